from __future__ import annotations

from pathlib import Path

import pytest

from infra.registry.alias_record import last_record, record_move
from infra.registry.ledger import FileLedger
from tests.infra.manual_clock import ManualClock


@pytest.fixture
def ledger(tmp_path: Path) -> FileLedger:
    return FileLedger(tmp_path / "ledger", ManualClock())


def move(
    ledger: FileLedger, found: str | None, to: str | None, *, actor: str = "ada"
) -> list[tuple[str, str, str]]:
    """Record a move, and what the ledger then says about the alias: action, from, to."""
    record_move(ledger, "shop", "champion", found=found, to=to, actor=actor, reason="better")
    said = [(entry.action, dict(entry.details)) for entry in ledger.entries("shop")]
    return [(action, details["from"], details["to"]) for action, details in said]


def test_moves_that_happened_follow_each_other(ledger: FileLedger) -> None:
    move(ledger, None, "1")
    move(ledger, "1", "2")
    assert move(ledger, "2", None) == [
        ("move-alias", "", "1"),
        ("move-alias", "1", "2"),
        ("move-alias", "2", ""),
    ]


def test_a_move_that_a_crash_left_out_is_finished_under_its_first_record(
    ledger: FileLedger,
) -> None:
    move(ledger, None, "1")
    assert move(ledger, None, "1") == [("move-alias", "", "1")]


def test_another_move_after_a_crash_first_notes_what_was_found(ledger: FileLedger) -> None:
    move(ledger, None, "1")
    assert move(ledger, None, "2") == [
        ("move-alias", "", "1"),
        ("note-alias", "1", ""),
        ("move-alias", "", "2"),
    ]


def test_the_same_move_by_somebody_else_is_a_record_of_its_own(ledger: FileLedger) -> None:
    move(ledger, None, "1")
    assert [action for action, _, _ in move(ledger, None, "1", actor="bo")] == [
        "move-alias",
        "note-alias",
        "move-alias",
    ]


def test_a_move_by_other_means_is_noted(ledger: FileLedger) -> None:
    move(ledger, None, "1")
    assert move(ledger, "7", "2") == [
        ("move-alias", "", "1"),
        ("note-alias", "1", "7"),
        ("move-alias", "7", "2"),
    ]


def test_aliases_and_models_have_records_of_their_own(ledger: FileLedger) -> None:
    move(ledger, None, "1")
    record_move(ledger, "shop", "candidate", found=None, to="9", actor="ada", reason="new")
    last = last_record(ledger.entries("shop"), "champion")
    assert last is not None
    assert dict(last.details)["to"] == "1"
    assert last_record(ledger.entries("other"), "champion") is None
    assert last_record(ledger.entries("shop"), "rollback") is None
