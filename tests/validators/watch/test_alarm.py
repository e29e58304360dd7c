"""When people are told: not for one window, not all the time, and when it is over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.errors import BadInput
from validators.contracts.verdict import Outcome
from validators.watch.alarm import (
    DECIDED,
    AlarmRule,
    AlarmState,
    Told,
    judged,
    looked,
    replaced,
)

RULE = AlarmRule(windows=3, drifted=2, cooldown_ms=1000)
LETTERS = {
    "P": Outcome.PASS, "W": Outcome.WARN, "F": Outcome.FAIL, "I": Outcome.INCONCLUSIVE,
    "E": Outcome.ERROR,
}  # fmt: skip


def told(windows: str, rule: AlarmRule = RULE) -> list[Told | None]:
    state, found = AlarmState(), []
    for at, letter in enumerate(windows):
        state, what = judged(state, LETTERS[letter], rule, at)
        found.append(what)
    return found


@pytest.mark.parametrize(("windows", "expected"), [
    ("PPPP", []),
    ("PFPPFP", []),
    ("PFF", [(2, Told.BEGAN)]),
    ("FPF", [(2, Told.BEGAN)]),
    ("FFFFF", [(1, Told.BEGAN)]),
    ("FFPP", [(1, Told.BEGAN), (3, Told.ENDED)]),
    ("FFPPFF", [(1, Told.BEGAN), (3, Told.ENDED), (5, Told.BEGAN)]),
    ("FIIIIF", [(5, Told.BEGAN)]),
    ("FFIIEEII", [(1, Told.BEGAN)]),
    ("FFIPEP", [(1, Told.BEGAN), (5, Told.ENDED)]),
    ("WWFW", []),
])  # fmt: skip
def test_an_alarm_begins_and_ends_by_decided_windows(
    windows: str, expected: list[tuple[int, Told]]
) -> None:
    assert [(at, what) for at, what in enumerate(told(windows)) if what] == expected


def test_an_alarm_that_goes_on_is_told_again_after_its_cooldown() -> None:
    state = AlarmState((Outcome.FAIL,) * 3, since_ms=5000, told_ms=5000)
    assert looked(state, RULE, 5999) == (state, None)
    again, what = looked(state, RULE, 6000)
    assert (what, again.told_ms, again.since_ms) == (Told.GOES_ON, 6000, 5000)
    assert looked(again, RULE, 6500) == (again, None)
    assert looked(again, RULE, 6500 - 2000)[1] is Told.GOES_ON, "the clock went back"
    assert looked(AlarmState(), RULE, 10**9) == (AlarmState(), None)


def test_another_version_begins_anew() -> None:
    firing = AlarmState((Outcome.FAIL,) * 3, since_ms=1, told_ms=1)
    assert replaced(firing, 10) == (AlarmState(), Told.ENDED)
    assert replaced(AlarmState((Outcome.FAIL,)), 10) == (AlarmState(), None)


@given(st.lists(st.sampled_from(list(Outcome))), st.integers(1, 6), st.integers(1, 6))
def test_beginnings_and_ends_take_turns_and_are_founded(
    outcomes: list[Outcome], windows: int, drifted: int
) -> None:
    if drifted > windows:
        with pytest.raises(BadInput):
            AlarmRule(windows, drifted, 0)
        return
    rule, state, open_now = AlarmRule(windows, drifted, 0), AlarmState(), False
    for at, outcome in enumerate(outcomes):
        state, what = judged(state, outcome, rule, at)
        if what is not None:
            assert what is (Told.ENDED if open_now else Told.BEGAN)
            open_now = not open_now
        assert state.firing is open_now
        decided = [item for item in outcomes[: at + 1] if item in DECIDED][-windows:]
        assert list(state.history) == decided
        assert open_now == (decided.count(Outcome.FAIL) >= drifted)
