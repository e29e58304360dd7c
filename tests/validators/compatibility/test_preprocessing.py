from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.compatibility.estimates import Estimate, share_of
from validators.compatibility.preprocessing import (
    InputCheck,
    InputSettings,
    TensorDifference,
    TriedInput,
    describe_inputs,
    input_metrics,
    judge_inputs,
    judge_unexplained,
)
from validators.contracts.verdict import Outcome


def tried(code: str, agreement: int, low: float, surer: float | None = None) -> TriedInput:
    gain = Estimate(low + 0.1, low, low + 0.2, 40)
    change = None if surer is None else Estimate(surer, surer - 0.03, surer + 0.03, 40)
    return TriedInput(code, f"it {code}", f"Do {code}.", share_of(agreement, 40), gain, change)


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
    ("new_surer", "old_surer", "code", "waivable"),
    [
        (0.1, -0.1, "wrong-preprocessing", False),  # the new one grows surer
        (-0.1, 0.1, "old-preprocessing-wrong", True),
        (0.1, 0.1, "wrong-preprocessing", False),
        (-0.04, 0.04, "wrong-preprocessing", True),  # less than their intervals can tell
        (-0.1, 0.04, "wrong-preprocessing", True),
        (None, 0.1, "wrong-preprocessing", True),
    ],
)
def test_where_both_versions_may_be_fed_wrongly_it_stops_and_the_new_one_is_suspected(
    new_surer: float | None, old_surer: float, code: str, waivable: bool
) -> None:
    check = replace(
        BAD,
        changed=(tried("reversed", 40, 0.3, new_surer),),
        reverted=(tried("reversed", 40, 0.3, old_surer),),
    )
    (finding,) = judge_inputs(check)
    assert (finding.code, finding.waivable) == (code, waivable)
    assert finding.outcome >= Outcome.INCONCLUSIVE
    assert ("one of the two versions is fed wrongly" in str(finding.measured)) is waivable


def test_the_change_that_helps_more_decides_before_confidence_does() -> None:
    check = replace(
        BAD,
        changed=(tried("reversed", 40, 0.3, -0.1),),
        reverted=(tried("reversed", 34, 0.3, 0.1),),
    )
    (finding,) = judge_inputs(check)
    assert (finding.code, finding.waivable) == ("wrong-preprocessing", False)


def test_vectors_accuse_where_neighbours_and_classes_stay_as_they_were() -> None:
    way = replace(
        tried("scaled", 40, -0.05),
        vectors=share_of(40, 40),
        vectors_gain=Estimate(0.9, 0.8, 0.95, 40),
    )
    check = InputCheck("image", 40, share_of(40, 40), (way,), vectors=share_of(4, 40))
    (finding,) = judge_inputs(check)
    assert finding.code == "wrong-preprocessing" and "0.10" in str(finding.measured)
    assert judge_inputs(replace(check, vectors=share_of(40, 40))) == []
    worse = replace(way, agreement=share_of(30, 40))
    assert judge_inputs(replace(check, changed=(worse,))) == []


def test_what_is_suspected_and_not_explained_is_said() -> None:
    differs = TensorDifference("pixels", "fit", "cropped otherwise", share_of(40, 40))
    unlike = replace(BAD, changed=(tried("x", 21, -0.1),))
    (finding,) = judge_unexplained(unlike, [])
    assert finding.outcome is Outcome.WARN and "no known convention" in str(finding.measured)
    alike = replace(unlike, declared=share_of(32, 40))
    assert judge_unexplained(alike, []) == [] and judge_unexplained(alike, [differs])
    assert judge_unexplained(BAD, [differs]) == []


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
