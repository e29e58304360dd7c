from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.registry.chain import GENESIS, Head, read_chain, read_end, seal
from validators.contracts.digest import canonical_json
from validators.contracts.errors import Refused
from validators.contracts.ports import LedgerEntry

GOLDEN = "sha256:7fc2e681fa5738ebab695fb01b35391c5aeba3c7742e5a0ce3d88013b279f01a"


def chain_of(length: int) -> list[LedgerEntry]:
    chain: list[LedgerEntry] = []
    for number in range(length):
        previous = chain[-1].digest if chain else GENESIS
        details = (("bundle", f"b{number}"),)
        entry = LedgerEntry(
            number, 1000 + number, "ada", "approve", "shop", "1", "good", details, previous, GENESIS
        )
        chain.append(seal(entry))
    return chain


def lines_of(chain: list[LedgerEntry]) -> list[bytes]:
    return [canonical_json(entry) for entry in chain]


def head_of(chain: list[LedgerEntry]) -> Head:
    return Head(len(chain), chain[-1].digest) if chain else Head()


def test_the_definition_of_an_entrys_digest_never_changes() -> None:
    assert chain_of(2)[1].digest == GOLDEN


@given(length=st.integers(0, 6), behind=st.integers(0, 1))
def test_an_untouched_chain_is_read_and_continued(length: int, behind: int) -> None:
    chain = chain_of(length)
    head = head_of(chain[: max(0, length - behind)])
    assert read_chain(lines_of(chain), head) == chain
    last = lines_of(chain)[-1] if chain else None
    assert read_end(last, head) == head_of(chain)


@given(data=st.data(), length=st.integers(1, 6))
def test_the_first_changed_entry_is_named(data: st.DataObject, length: int) -> None:
    chain = chain_of(length)
    broken = data.draw(st.integers(0, length - 1))
    field = data.draw(st.sampled_from(["actor", "action", "model", "version", "reason", "at_ms"]))
    change = 7 if field == "at_ms" else "mallory"
    lines = lines_of(chain)
    lines[broken] = canonical_json(dataclasses.replace(chain[broken], **{field: change}))
    with pytest.raises(Refused, match=f"entry {broken} of the ledger is changed") as caught:
        read_chain(lines, head_of(chain))
    assert caught.value.where == f"line {broken + 1}"


@given(data=st.data(), length=st.integers(2, 6))
def test_a_resealed_forgery_breaks_at_its_successor(data: st.DataObject, length: int) -> None:
    chain = chain_of(length)
    forged = data.draw(st.integers(0, length - 2))
    lines = lines_of(chain)
    lines[forged] = canonical_json(seal(dataclasses.replace(chain[forged], reason="forged")))
    with pytest.raises(Refused, match=f"entry {forged + 1} of the ledger is not the successor"):
        read_chain(lines, head_of(chain))


@given(data=st.data(), length=st.integers(1, 6))
def test_a_removed_entry_is_named(data: st.DataObject, length: int) -> None:
    chain = chain_of(length)
    removed = data.draw(st.integers(0, length - 1))
    lines = lines_of(chain)
    del lines[removed]
    with pytest.raises(Refused, match=f"entry {removed} of the ledger"):
        read_chain(lines, head_of(chain))


@given(line=st.binary(max_size=60))
def test_what_is_no_entry_is_refused(line: bytes) -> None:
    with pytest.raises(Refused, match="entry 0 of the ledger is not an entry"):
        read_chain([line], Head())
    with pytest.raises(Refused):
        read_end(line, Head())


def test_an_end_that_was_replaced_is_refused() -> None:
    chain = chain_of(3)
    forged = canonical_json(seal(dataclasses.replace(chain[2], reason="forged")))
    for head in (head_of(chain), head_of(chain[:1])):
        with pytest.raises(Refused, match="acknowledged"):
            read_end(forged, head)
    with pytest.raises(Refused, match="acknowledged"):
        read_chain([*lines_of(chain[:2]), forged], head_of(chain))


def test_a_chain_whose_head_was_lost_is_refused() -> None:
    chain = chain_of(3)
    with pytest.raises(Refused, match="none was acknowledged"):
        read_chain(lines_of(chain), Head())
    with pytest.raises(Refused, match="acknowledged"):
        read_end(lines_of(chain)[-1], Head())


def test_a_chain_whose_entries_were_all_lost_is_refused() -> None:
    with pytest.raises(Refused, match="entry 0 of the ledger is missing, of 3"):
        read_chain([], head_of(chain_of(3)))
    with pytest.raises(Refused, match="entry 0 of the ledger is missing, of 3"):
        read_end(None, head_of(chain_of(3)))
