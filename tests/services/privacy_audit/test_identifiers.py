from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.privacy_audit.identifiers import find_identifiers, is_card, is_resident

_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("call +44 20 7946 0958 now", "phone", "+44 20 7946 0958"),
        ("(212) 555-0187", "phone", "(212) 555-0187"),
        ("电话13812345678", "phone", "13812345678"),
        ("tel. １３８１２３４５６７８", "phone", "１３８１２３４５６７８"),
        ("write to jane.doe@example.org.", "e-mail", "jane.doe@example.org"),
        ("card 4111 1111 1111 1111", "payment-number", "4111 1111 1111 1111"),
        ("card 378282246310005", "payment-number", "378282246310005"),
        ("to GB82 WEST 1234 5698 7654 32 please", "payment-number", "GB82 WEST 1234 5698 7654 32"),
        ("DE89370400440532013000", "payment-number", "DE89370400440532013000"),
        ("身份证11010519491231002X", "id-number", "11010519491231002X"),
        ("ssn 123-45-6789", "id-number", "123-45-6789"),
        ("host 192.168.7.31", "network-address", "192.168.7.31"),
    ],
)
def test_an_identifier_is_found_where_it_stands(text: str, kind: str, found: str) -> None:
    (item,) = find_identifiers(text)
    assert (item.kind, text[item.start : item.end]) == (kind, found)


@pytest.mark.parametrize(
    "text",
    [
        "a sleeping cat",
        "in 2019, 300 people",
        "the war of 1939-1945",
        "4111 1111 1111 1112",  # the check digit is wrong
        "0000 0000 0000 0000",
        "GB83 WEST 1234 5698 7654 32",
        "110105194912310021",
        "11010519491331002X",  # the thirteenth month
        "000-12-3456",
        "version 1.2.3.400",
        "a price of $1,000,000.00",
    ],
)
def test_what_only_looks_like_one_is_left_alone(text: str) -> None:
    assert find_identifiers(text) == []


def test_the_graver_of_two_readings_stands() -> None:
    both = "110105194912310150"
    assert is_card(both)
    (item,) = find_identifiers(both)
    assert item.kind == "id-number"


@given(st.text(alphabet="0123456789", min_size=12, max_size=18))
def test_exactly_one_check_digit_completes_a_card(digits: str) -> None:
    valid = [is_card(digits + str(last)) for last in range(10)]
    assert sum(valid) == 1 or len(set(digits)) == 1


@given(
    st.integers(100_000, 999_999),
    st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 12, 31)),
    st.integers(0, 999),
)
def test_every_resident_number_with_its_check_character_is_known(
    area: int, born: datetime.date, serial: int
) -> None:
    digits = f"{area}{str(born).replace('-', '')}{serial:03}"
    total = sum(int(digit) * weight for digit, weight in zip(digits, _WEIGHTS, strict=True))
    assert is_resident(digits + "10X98765432"[total % 11])
    assert not is_resident(digits + "10X98765432"[(total + 1) % 11])


@given(st.text(max_size=120))
def test_no_text_raises_and_finds_do_not_overlap(text: str) -> None:
    places = [range(item.start, item.end) for item in find_identifiers(text)]
    assert sum(map(len, places)) == len({place for span in places for place in span})
    assert all(span.stop <= len(text) for span in places)
