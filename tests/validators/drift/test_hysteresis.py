from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.errors import BadInput
from validators.contracts.verdict import Outcome
from validators.drift.hysteresis import alarmed

F, P, N = Outcome.FAIL, Outcome.PASS, Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("history", "alarm"),
    [
        ([], False),
        ([F], False),
        ([F, F], True),
        ([F, P, F], True),
        ([F, F, P, P], False),
        ([N, N, N], False),
        ([F, N, F], True),
    ],
)
def test_two_of_the_last_three_windows_have_to_drift(history: list[Outcome], alarm: bool) -> None:
    assert alarmed(history, k=2, n=3) is alarm


@given(st.lists(st.sampled_from(list(Outcome))), st.integers(1, 5))
def test_a_stricter_rule_never_alarms_where_a_laxer_one_does_not(
    history: list[Outcome], k: int
) -> None:
    assert alarmed(history, k=k, n=6) >= alarmed(history, k=k + 1, n=6)


@pytest.mark.parametrize(("k", "n"), [(0, 3), (4, 3)])
def test_an_impossible_rule_is_refused(k: int, n: int) -> None:
    with pytest.raises(BadInput):
        alarmed([], k=k, n=n)
