"""Contacts and numbers in text, each checked by its own rule so that a find is a find.

Cards by Luhn (ISO/IEC 7812-1), accounts by mod 97 (ISO 13616), residents of the PRC by GB 11643,
phones by the numbering plans that `phonenumbers` knows, US social security numbers by their areas.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import phonenumbers

VERSION = 1
_REGIONS = ("US", "GB", "CN", "DE", "FR", "IN", "JP")

_EMAIL = re.compile(r"[^\s@<>()\[\],;:\"]{1,64}@[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{2,63}){1,6}")
_RESIDENT = re.compile(r"(?<!\d)\d{17}[\dXx](?![0-9A-Za-z])")
_SOCIAL = re.compile(r"(?<![\d-])(\d{3})-(\d{2})-(\d{4})(?![\d-])")
_CARD = re.compile(r"(?<!\d)\d(?:[ \-]?\d){12,18}(?!\d)")
_ACCOUNT = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")

_RESIDENT_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_RESIDENT_CHECKS = "10X98765432"


@dataclass(frozen=True, slots=True)
class Identifier:
    kind: str
    start: int
    end: int


def version() -> str:
    return f"identifiers {VERSION} with phonenumbers {phonenumbers.__version__}"


def find_identifiers(text: str) -> list[Identifier]:
    """Identifiers in the text, in order; where two overlap, the graver one stands."""
    plain = _as_ascii(text)
    found: list[Identifier] = []
    for kind, search in _SEARCHES:
        for start, end in search(plain):
            if all(end <= item.start or start >= item.end for item in found):
                found.append(Identifier(kind, start, end))
    return sorted(found, key=lambda item: item.start)


def is_card(digits: str) -> bool:
    """Luhn's check over 13 to 19 digits that are not all one digit."""
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    doubled = [int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def is_account(text: str) -> bool:
    """An IBAN whose check digits hold."""
    plain = text.replace(" ", "")
    if not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def is_resident(text: str) -> bool:
    """A PRC resident identity number: a plausible birth date and the right check character."""
    year, month, day = int(text[6:10]), int(text[10:12]), int(text[12:14])
    if not (1900 <= year <= 2100 and 1 <= month <= 12 and 1 <= day <= 31):
        return False
    total = sum(
        int(digit) * weight for digit, weight in zip(text[:17], _RESIDENT_WEIGHTS, strict=True)
    )
    return _RESIDENT_CHECKS[total % 11] == text[17].upper()


def _residents(text: str) -> Iterator[tuple[int, int]]:
    yield from (item.span() for item in _RESIDENT.finditer(text) if is_resident(item.group()))


def _socials(text: str) -> Iterator[tuple[int, int]]:
    for item in _SOCIAL.finditer(text):
        area, group, serial = item.groups()
        if area not in ("000", "666") and area < "900" and group != "00" and serial != "0000":
            yield item.span()


def _cards(text: str) -> Iterator[tuple[int, int]]:
    for item in _CARD.finditer(text):
        if is_card(re.sub(r"\D", "", item.group())):
            yield item.span()


def _accounts(text: str) -> Iterator[tuple[int, int]]:
    for item in _ACCOUNT.finditer(text):
        # The expression is greedy over spaces: try ever shorter ends at a space.
        candidate = item.group()
        while candidate:
            if is_account(candidate):
                yield item.start(), item.start() + len(candidate)
                break
            candidate = candidate.rpartition(" ")[0]


def _emails(text: str) -> Iterator[tuple[int, int]]:
    yield from (item.span() for item in _EMAIL.finditer(text))


def _phones(text: str) -> Iterator[tuple[int, int]]:
    for region in _REGIONS:
        for item in phonenumbers.PhoneNumberMatcher(text, region):
            yield item.start, item.end


def _addresses(text: str) -> Iterator[tuple[int, int]]:
    for item in _ADDRESS.finditer(text):
        try:
            ipaddress.IPv4Address(item.group())
        except ValueError:
            continue
        yield item.span()


_SEARCHES: tuple[tuple[str, Callable[[str], Iterator[tuple[int, int]]]], ...] = (
    ("id-number", _residents),
    ("id-number", _socials),
    ("payment-number", _accounts),
    ("payment-number", _cards),
    ("e-mail", _emails),
    ("network-address", _addresses),
    ("phone", _phones),
)


def _as_ascii(text: str) -> str:
    """Digits of any script and full-width letters as ASCII, one character for one."""
    return "".join(_plain(char) for char in text)


def _plain(char: str) -> str:
    if char.isascii():
        return char
    digit = unicodedata.digit(char, None)
    if digit is not None:
        return str(digit)
    folded = unicodedata.normalize("NFKC", char)
    return folded if len(folded) == 1 else char
