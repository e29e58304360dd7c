"""The chain of ledger entries: each holds the digest of the one before. Pure: no file is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from validators.contracts.digest import Digest, canonical_json, digest_bytes, digest_value
from validators.contracts.documents import load
from validators.contracts.errors import Refused
from validators.contracts.ports import LedgerEntry

GENESIS = digest_bytes(b"")


@dataclass(frozen=True, slots=True)
class Head:
    """How far the chain is known to reach: what the last writer was told is there."""

    entries: int = 0
    digest: Digest = GENESIS


def seal(entry: LedgerEntry) -> LedgerEntry:
    """The entry with the digest of everything else in it."""
    values = {
        field.name: getattr(entry, field.name)
        for field in dataclasses.fields(entry)
        if field.name != "digest"
    }
    return dataclasses.replace(entry, digest=digest_value("ledger-entry", values))


def read_chain(lines: Iterable[bytes], head: Head) -> list[LedgerEntry]:
    """The entries that the lines hold, each checked against the one before.

    The head may be one entry behind, where a writer died between the entry and the head.

    Raises:
        Refused: naming the first entry that does not hold.
    """
    chain: list[LedgerEntry] = []
    for line in lines:
        chain.append(_next(line, chain[-1] if chain else None))
    if len(chain) < head.entries:
        raise broken(len(chain), f"missing, of {head.entries} that were acknowledged")
    if head.entries and chain[head.entries - 1].digest != head.digest:
        raise broken(head.entries - 1, "not the one that was acknowledged")
    if len(chain) > head.entries + 1:
        raise broken(head.entries, "followed by more, of which none was acknowledged")
    return chain


def read_end(line: bytes | None, head: Head) -> Head:
    """Where the next entry goes, judged by the last line alone. Raises Refused as `read_chain`."""
    if line is None:
        if head.entries:
            raise broken(0, f"missing, of {head.entries} that were acknowledged")
        return head
    entry = _parse(line, max(head.entries - 1, 0))
    acknowledged = entry.sequence == head.entries - 1 and entry.digest == head.digest
    one_ahead = entry.sequence == head.entries and entry.previous == head.digest
    if not (acknowledged or one_ahead):
        raise broken(entry.sequence, "not the one that was acknowledged")
    return Head(entry.sequence + 1, entry.digest)


def broken(sequence: int, how: str) -> Refused:
    return Refused(
        f"entry {sequence} of the ledger is {how}",
        where=f"line {sequence + 1}",
        remedy="Restore the ledger and its head from their backup: nothing in it is believed "
        "until the chain holds.",
    )


def _next(line: bytes, before: LedgerEntry | None) -> LedgerEntry:
    sequence = before.sequence + 1 if before else 0
    entry = _parse(line, sequence)
    if entry.sequence != sequence:
        raise broken(sequence, f"numbered {entry.sequence}")
    if entry.previous != (before.digest if before else GENESIS):
        raise broken(sequence, "not the successor of the one before")
    return entry


def _parse(line: bytes, sequence: int) -> LedgerEntry:
    try:
        entry = load(LedgerEntry, line)
    except Refused as error:
        raise broken(sequence, "not an entry") from error
    if seal(entry) != entry or canonical_json(entry) != line:
        raise broken(sequence, "changed since it was written")
    return entry
