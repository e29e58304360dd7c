"""When people are told of drift: k of the last n decided windows, a cooldown, and an end. Pure.

A window that decided nothing (INCONCLUSIVE, ERROR) neither begins an alarm nor ends one: it does
not push out what was decided before. An alarm ends when the rule no longer holds over decided
windows, or when another version of the service took its place.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from validators.contracts.errors import BadInput
from validators.contracts.verdict import Outcome

DECIDED = (Outcome.PASS, Outcome.WARN, Outcome.FAIL)


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """`drifted` of the last `windows`; an alarm that goes on is told again after `cooldown_ms`."""

    windows: int
    drifted: int
    cooldown_ms: int

    def __post_init__(self) -> None:
        if not 1 <= self.drifted <= self.windows or self.cooldown_ms < 0:
            raise BadInput(
                f"{self.drifted} of {self.windows} windows is no rule",
                remedy="Choose 1 <= drifted <= windows.",
            )


class Told(enum.Enum):
    """What there is to tell."""

    BEGAN = "began"
    GOES_ON = "goes on"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class AlarmState:
    """`history` are the latest decided windows, newest last; `since_ms` is None while quiet."""

    history: tuple[Outcome, ...] = ()
    since_ms: int | None = None
    told_ms: int = 0

    @property
    def firing(self) -> bool:
        return self.since_ms is not None


def judged(
    state: AlarmState, outcome: Outcome, rule: AlarmRule, now_ms: int
) -> tuple[AlarmState, Told | None]:
    """One more window was judged."""
    if outcome not in DECIDED:
        return state, None
    history = (*state.history, outcome)[-rule.windows :]
    state = replace(state, history=history)
    alarms = sum(item is Outcome.FAIL for item in history) >= rule.drifted
    if alarms and not state.firing:
        return replace(state, since_ms=now_ms, told_ms=now_ms), Told.BEGAN
    if not alarms and state.firing:
        return replace(state, since_ms=None, told_ms=now_ms), Told.ENDED
    return state, None


def looked(state: AlarmState, rule: AlarmRule, now_ms: int) -> tuple[AlarmState, Told | None]:
    """Time went by: an alarm that goes on is told again.

    A clock that went back by more than the cooldown counts as time gone by.
    """
    if state.firing and abs(now_ms - state.told_ms) >= rule.cooldown_ms:
        return replace(state, told_ms=now_ms), Told.GOES_ON
    return state, None


def replaced(state: AlarmState, now_ms: int) -> tuple[AlarmState, Told | None]:
    """Another version serves now, with a reference of its own: what was seen says nothing of it."""
    return AlarmState(), Told.ENDED if state.firing else None
