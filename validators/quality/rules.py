"""How rules make findings: what a consequence means, and how many ids are named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from validators.contracts.quality import Consequence
from validators.contracts.verdict import Finding, Outcome
from validators.quality.naming import GATE
from validators.quality.words import MAX_NAMED

_OUTCOMES = {Consequence.OFF: None, Consequence.WARN: Outcome.WARN, Consequence.FAIL: Outcome.FAIL}


def outcome_of(consequence: Consequence) -> Outcome | None:
    """What a broken rule comes to; None where it is off."""
    return _OUTCOMES[consequence]


def finding(
    consequence: Consequence,
    code: str,
    subject: str,
    measured: float | str,
    limit: float | str,
    *,
    remedy: str,
) -> Iterator[Finding]:
    """The finding of a broken rule; nothing where the rule is off."""
    outcome = _OUTCOMES[consequence]
    if outcome is not None:
        name = code.replace("_", "-").replace(".", "-")
        yield Finding(GATE, name, subject, outcome, measured, limit, remedy)


def named(ids: Sequence[str]) -> str:
    """Ids for a message: the first of them, and how many more."""
    more = f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else ""
    return ", ".join(ids[:MAX_NAMED]) + more
