"""Pairs judged by figures alone: names do not matter, unmeasured is never a pass."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.compatibility.measured import CompatibilityWord
from validators.compatibility.paired import (
    PairMeasurement,
    PairRetrieval,
    PairRun,
    upper_loss,
    upper_rate,
)
from validators.compatibility.pairing import PairSettings, judge_pair
from validators.contracts.engine import Precision
from validators.contracts.verdict import Outcome

FP16, FP32 = Precision.FP16, Precision.FP32
RUN = PairRun(FP16, FP16, "torch fp16, CPU", 320, 0, peak=10.0, headroom=6550.0)
PAIR = PairMeasurement("r0", "c0", (RUN,))
FOUND = PairRetrieval(
    k=10, queries=200, chance=0.05, reference_hits=120, hits=120, lost=2, gained=2,
    refitted_hits=120, refitted_lost=3, refitted_gained=3,
)  # fmt: skip


def pair(**changes: object) -> PairMeasurement:
    return replace(PAIR, runs=(replace(RUN, **changes),))


def meeting(**changes: object) -> PairMeasurement:
    return PairMeasurement("r0", "c0", retrieval=replace(FOUND, **changes))


@pytest.mark.parametrize(
    ("measured", "word", "outcome", "code"),
    [
        (pair(), CompatibilityWord.COMPATIBLE, Outcome.PASS, ""),
        (pair(broken=1), CompatibilityWord.BLOCK, Outcome.FAIL, "broken-together"),
        (pair(broken=5, broken_first=5), CompatibilityWord.BLOCK, Outcome.FAIL, "broken-alone"),
        (pair(requests=298), None, Outcome.INCONCLUSIVE, "too-few-requests"),
        (pair(requests=299), CompatibilityWord.COMPATIBLE, Outcome.PASS, ""),
        (pair(computed=FP32), None, Outcome.INCONCLUSIVE, "not-computed-there"),
        (pair(computed=None), None, Outcome.INCONCLUSIVE, "not-computed-there"),
        (pair(headroom=1.5), CompatibilityWord.COMPATIBLE, Outcome.WARN, "little-headroom"),
        (pair(flushed_share=0.2), CompatibilityWord.COMPATIBLE, Outcome.WARN, "underflow"),
        (replace(PAIR, crashed="died of SIGSEGV"), None, Outcome.ERROR, "pair-not-run"),
        (replace(PAIR, runs=()), None, Outcome.INCONCLUSIVE, "nothing-measured"),
        (meeting(), CompatibilityWord.COMPATIBLE, Outcome.PASS, ""),
        (meeting(hits=10, lost=112), CompatibilityWord.ADAPTER, Outcome.WARN, "adapter-needed"),
        (meeting(hits=10, lost=112, refitted_hits=40, refitted_lost=90),
         CompatibilityWord.REINDEX, Outcome.FAIL, "reindex"),
        (meeting(unusable=3), CompatibilityWord.BLOCK, Outcome.FAIL, "unusable-vectors"),
        (meeting(queries=20), None, Outcome.INCONCLUSIVE, "too-few-queries"),
        (meeting(queries=20, is_reference=True), CompatibilityWord.COMPATIBLE, Outcome.PASS, ""),
    ],
)  # fmt: skip
def test_figures_have_their_word(
    measured: PairMeasurement, word: CompatibilityWord | None, outcome: Outcome, code: str
) -> None:
    judged = judge_pair(measured)
    assert (judged.word, judged.verdict.outcome) == (word, outcome)
    assert [item.code for item in judged.verdict.findings][:1] == ([code] if code else [])


def test_a_broken_pair_is_never_waived_and_one_in_an_unserved_precision_only_warns() -> None:
    broken = pair(broken=300)
    assert not judge_pair(broken).verdict.findings[0].waivable
    served = PairSettings(served=frozenset({FP32}))
    both = replace(broken, runs=(*broken.runs, replace(RUN, precision=FP32, computed=FP32)))
    judged = judge_pair(both, served)
    assert (judged.word, judged.verdict.outcome) == (CompatibilityWord.COMPATIBLE, Outcome.WARN)


def test_the_first_broken_layer_and_the_interval_are_said() -> None:
    said = str(judge_pair(pair(broken=311, first_broken="norm")).verdict.findings[0].measured)
    assert "311 of 320 requests (97.2%, 95 % interval" in said
    assert "first in norm" in said


runs = st.builds(
    PairRun,
    precision=st.sampled_from((FP16, Precision.BF16, FP32)),
    computed=st.sampled_from((FP16, Precision.BF16, FP32, None)),
    computed_in=st.just("somewhere"),
    requests=st.integers(0, 2000),
    broken=st.just(0),
    peak=st.floats(0, 1e5),
    headroom=st.floats(0, 1e5),
    flushed_share=st.floats(0, 1),
).flatmap(lambda run: st.integers(0, run.requests).map(lambda bad: replace(run, broken=bad)))


@given(st.lists(runs, max_size=3), st.text(max_size=8), st.text(max_size=8))
def test_names_change_nothing(given_runs: list[PairRun], row: str, column: str) -> None:
    here = judge_pair(PairMeasurement("r0", "c0", tuple(given_runs)))
    there = judge_pair(PairMeasurement(row, column, tuple(given_runs)))
    assert here == there


@given(st.lists(runs, max_size=3))
def test_nothing_broken_or_unmeasured_passes(given_runs: list[PairRun]) -> None:
    judged = judge_pair(PairMeasurement("r0", "c0", tuple(given_runs)))
    measured = [run for run in given_runs if run.computed is run.precision]
    if any(run.broken for run in measured):
        assert judged.word is CompatibilityWord.BLOCK
    if judged.word is CompatibilityWord.COMPATIBLE:
        assert len(measured) == len(given_runs) > 0
        assert all(upper_rate(run.broken, run.requests) <= 0.01 for run in measured)


@given(st.integers(0, 500), st.integers(1, 500))
def test_an_upper_rate_covers_what_was_seen(broken: int, more: int) -> None:
    requests = broken + more
    assert broken / requests <= upper_rate(broken, requests) <= 1
    assert upper_rate(0, 0) == 1


@given(st.integers(0, 200), st.integers(0, 200), st.integers(1, 200))
def test_an_upper_loss_is_above_the_loss(lost: int, gained: int, rest: int) -> None:
    queries = lost + gained + rest
    assert upper_loss(lost, gained, queries) >= (lost - gained) / queries - 1e-12
