"""What the ledger says about an alias, and how a move is recorded so that a crash shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from validators.contracts.ports import Ledger, LedgerEntry

MOVE = "move-alias"
NOTE = "note-alias"
NOBODY = "registry"

_NONE = ""


def record_move(
    ledger: Ledger, model: str, alias: str, *, found: str | None, to: str | None, actor: str,
    reason: str,
) -> None:  # fmt: skip
    """Record a move that is about to be made; an unfinished record of the same move is enough.

    Details: `alias`, `from` and `to`, an empty text standing for no version.
    """
    last = last_record(ledger.entries(model), alias)
    details = {"alias": alias, "from": found or _NONE, "to": to or _NONE}
    recorded = dict(last.details)["to"] if last else _NONE
    if recorded != details["from"]:
        if last and _is_same(last, details, actor, reason):
            return
        ledger.append(
            actor=NOBODY,
            action=NOTE,
            model=model,
            version=details["from"],
            reason="the alias was not where the ledger had it: a crash, or a move by other means",
            details={"alias": alias, "from": recorded, "to": details["from"]},
        )
    ledger.append(
        actor=actor,
        action=MOVE,
        model=model,
        version=details["to"] or details["from"],
        reason=reason,
        details=details,
    )


def last_record(entries: Iterable[LedgerEntry], alias: str) -> LedgerEntry | None:
    """The latest entry that says where an alias points."""
    about = [
        entry
        for entry in entries
        if entry.action in {MOVE, NOTE} and dict(entry.details).get("alias") == alias
    ]
    return about[-1] if about else None


def _is_same(entry: LedgerEntry, details: Mapping[str, str], actor: str, reason: str) -> bool:
    told = (entry.action, dict(entry.details), entry.actor, entry.reason)
    return told == (MOVE, dict(details), actor, reason)
