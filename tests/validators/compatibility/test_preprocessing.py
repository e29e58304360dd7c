from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.compatibility.estimates import Estimate, share_of
from validators.compatibility.preprocessing import (
    InputCheck,
    InputSettings,
    TriedInput,
    describe_inputs,
    input_metrics,
    judge_inputs,
)
from validators.contracts.verdict import Outcome


def tried(code: str, agreement: int, low: float, confidence: float | None = None) -> TriedInput:
    gain = Estimate(low + 0.1, low, low + 0.2, 40)
    return TriedInput(code, f"it {code}", f"Do {code}.", share_of(agreement, 40), gain, confidence)


BAD = InputCheck("image", 40, share_of(20, 40), (tried("reversed", 40, 0.3), tried("x", 21, -0.1)))


def test_a_shown_mistake_blocks_and_nothing_waives_it() -> None:
    (finding,) = judge_inputs(BAD)
    assert (finding.outcome, finding.waivable) == (Outcome.FAIL, False)
    assert finding.remedy == "Do reversed." and "it reversed" in str(finding.measured)
    assert describe_inputs(BAD) == finding.measured
    assert input_metrics(BAD)["input_best_gain_low"] == 0.3


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (replace(BAD, declared=share_of(39, 40)), "agree as they are fed"),
        (replace(BAD, items=11), "too few"),
        (replace(BAD, changed=(tried("reversed", 40, 0.05),)), "no known convention"),
        (replace(BAD, changed=(tried("reversed", 20, 0.3),)), "no known convention"),
        (replace(BAD, changed=()), "no known convention"),
    ],
)
def test_without_a_clear_gain_to_a_real_agreement_nobody_is_accused(
    check: InputCheck, words: str
) -> None:
    assert judge_inputs(check) == [] and words in describe_inputs(check)


@pytest.mark.parametrize(
    ("new_fed", "new_now", "old_fed", "old_now", "code"),
    [
        (0.5, 0.4, 0.4, 0.5, "wrong-preprocessing"),  # the new one grows surer
        (0.4, 0.5, 0.5, 0.4, "old-preprocessing-wrong"),
        (0.5, 0.4, 0.5, 0.4, "wrong-preprocessing"),  # both: the old one stays the reference
        (None, 0.5, 0.5, 0.4, "wrong-preprocessing"),
    ],
)
def test_the_version_that_grows_surer_was_fed_wrongly(
    new_fed: float | None, new_now: float, old_fed: float, old_now: float, code: str
) -> None:
    check = replace(
        BAD,
        changed=(tried("reversed", 40, 0.3, new_fed),),
        reverted=(tried("reversed", 40, 0.3, old_fed),),
        confidence_new=new_now,
        confidence_old=old_now,
    )
    assert [item.code for item in judge_inputs(check)] == [code]


def test_the_change_that_helps_more_decides_before_confidence_does() -> None:
    check = replace(
        BAD,
        changed=(tried("reversed", 40, 0.3, 0.4),),
        reverted=(tried("reversed", 34, 0.3, 0.5),),
        confidence_new=0.5,
        confidence_old=0.4,
    )
    assert [item.code for item in judge_inputs(check)] == ["wrong-preprocessing"]


@given(st.integers(0, 40), st.floats(-0.5, 0.8), st.integers(0, 40), st.integers(0, 60))
def test_an_accusation_always_has_its_evidence(
    agreement: int, low: float, declared: int, items: int
) -> None:
    limits = InputSettings()
    way = tried("reversed", agreement, low)
    check = InputCheck("image", items, share_of(declared, 40), (way,))
    if judge_inputs(check):
        assert low > limits.gain and way.agreement.value >= limits.agreement
        assert check.declared.value < limits.fine and items >= limits.least_items
