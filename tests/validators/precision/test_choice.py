from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.validators.precision.tables import row, steady, table, task, timing
from validators.contracts.digest import canonical_json
from validators.contracts.engine import TOLERANCES, Precision
from validators.contracts.verdict import Outcome
from validators.precision.choice import LEAST_GAIN, TASK_FLOOR, beats, choose_precision
from validators.precision.words import WIDEST_FIRST, Objective, PrecisionMeasurement

FP32, BF16, INT8, INT4 = Precision.FP32, Precision.BF16, Precision.INT8, Precision.INT4
ROUNDS = 5

measurements = st.builds(
    lambda precision, base, noise, max_rel, cosine, kept, nonfinite, refused: row(
        precision,
        [base * factor for factor in noise],
        max_rel=max_rel,
        cosine_min=cosine,
        nonfinite=nonfinite,
        tasks=(task(kept, 100),),
        refused="no such thing" if refused else "",
    ),
    st.sampled_from(WIDEST_FIRST),
    st.floats(0.1, 100),
    st.lists(st.floats(0.5, 2), min_size=ROUNDS, max_size=ROUNDS),
    st.sampled_from([0.0, 1e-4, 1e-2, 0.1, 0.5, math.nan]),
    st.sampled_from([1.0, 0.999, 0.97, 0.5]),
    st.integers(90, 100),
    st.sampled_from([0, 0, 0, 3]),
    st.booleans(),
)
tables = st.lists(measurements, max_size=5, unique_by=lambda item: item.precision)


def passes(item: PrecisionMeasurement) -> bool:
    limits = TOLERANCES[item.precision]
    assert item.max_rel is not None and item.cosine_min is not None
    return (
        item.measured
        and item.nonfinite == 0
        and item.max_rel <= limits.max_rel
        and item.cosine_min >= limits.cosine_min
        and all(one.after >= TASK_FLOOR for one in item.tasks)
    )


@given(tables)
def test_what_is_off_parity_is_never_chosen(rows: list[PrecisionMeasurement]) -> None:
    chosen, verdict = choose_precision(table(*rows), TOLERANCES)
    if chosen is None:
        assert verdict.outcome > Outcome.WARN
        return
    assert verdict.outcome <= Outcome.WARN
    assert passes(next(item for item in rows if item.precision is chosen))


@given(tables)
def test_what_another_passing_one_beats_is_never_chosen(rows: list[PrecisionMeasurement]) -> None:
    chosen, _ = choose_precision(table(*rows), TOLERANCES)
    if chosen is None:
        return
    ours = next(item for item in rows if item.precision is chosen)
    for other in filter(passes, rows):
        if other is not ours:
            assert not beats(other, ours, Objective.LATENCY)


@given(tables)
def test_a_narrower_one_has_to_beat_the_widest_that_passes(
    rows: list[PrecisionMeasurement],
) -> None:
    chosen, _ = choose_precision(table(*rows), TOLERANCES)
    passing = [item for p in WIDEST_FIRST for item in rows if item.precision is p and passes(item)]
    if chosen is not None and chosen is not passing[0].precision:
        ours = next(item for item in passing if item.precision is chosen)
        assert beats(ours, passing[0], Objective.LATENCY)


@given(tables, st.randoms())
def test_the_order_of_rows_changes_nothing(
    rows: list[PrecisionMeasurement], shuffler: random.Random
) -> None:
    mixed = shuffler.sample(rows, len(rows))
    assert choose_precision(table(*rows), TOLERANCES) == choose_precision(table(*mixed), TOLERANCES)


@given(tables)
def test_every_candidate_that_is_not_chosen_is_a_finding_with_its_numbers(
    rows: list[PrecisionMeasurement],
) -> None:
    chosen, verdict = choose_precision(table(*rows), TOLERANCES)
    for item in rows:
        about = [f for f in verdict.findings if f.subject.startswith(f"image on openvino, "
                 f"{item.precision.value}")]  # fmt: skip
        if item.precision is not chosen and not (chosen is None and item.measured and passes(item)):
            assert about, item.precision
        assert all(finding.measured != "" for finding in about)
    canonical_json(verdict)  # no NaN in a document


@pytest.mark.parametrize(
    ("times_ms", "chosen"),
    [
        ({FP32: 10.0, BF16: 5.0, INT8: 3.0}, INT8),
        ({FP32: 10.0, BF16: 5.0, INT8: 5.0}, BF16),  # a tie goes to the wider one
        ({FP32: 10.0, BF16: 12.0}, FP32),
        ({FP32: 10.0, BF16: 10.0}, FP32),
        ({FP32: 10.0, BF16: 9.8}, FP32),  # always faster, and hardly
        ({INT8: 3.0}, INT8),
    ],
)
def test_the_fastest_wins_and_ties_go_to_the_wider(
    times_ms: dict[Precision, float], chosen: Precision
) -> None:
    found, verdict = choose_precision(steady(times_ms), TOLERANCES)
    assert found is chosen
    assert verdict.outcome is Outcome.PASS


def test_a_slower_precision_is_refused_with_the_measured_ratio() -> None:
    _, verdict = choose_precision(steady({FP32: 10.0, BF16: 12.5}), TOLERANCES)
    (finding,) = verdict.findings
    assert (finding.code, finding.outcome) == ("slower", Outcome.PASS)
    assert str(finding.measured).startswith("1.250 times the time of fp32")


def test_a_small_gain_is_refused_with_the_measured_ratio() -> None:
    _, verdict = choose_precision(
        steady({FP32: 10.0, INT4: 10.0 * (1 - LEAST_GAIN / 2)}), TOLERANCES
    )
    (finding,) = verdict.findings
    assert (finding.code, finding.outcome) == ("small-gain", Outcome.PASS)
    assert str(finding.measured).startswith("0.975 times the time of fp32")


def test_one_ahead_of_fp32_is_taken_where_its_wider_rival_only_ties_with_both() -> None:
    fp32, bf16 = row(FP32, [10, 10, 10, 10, 10]), row(BF16, [9, 9, 9, 11, 8])
    int8 = row(INT8, [8, 8, 8, 8, 9])
    assert choose_precision(table(fp32, bf16, int8), TOLERANCES)[0] is INT8


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"max_rel": 0.5}, "relative-difference"),
        ({"max_rel": math.nan}, "relative-difference"),
        ({"cosine_min": 0.5}, "cosine"),
        ({"nonfinite": 2}, "nonfinite"),
        ({"tasks": (task(90, 100),)}, "task"),
        ({"refused": "no kernel"}, "unsupported"),
        ({"refused": "it was killed", "transient": True}, "not-measured"),
        ({"timings": ()}, "unsupported"),
        ({"timings": (timing([1.0, math.nan]),)}, "unsupported"),
    ],
)
def test_a_narrow_one_that_fails_is_a_warning_and_a_failing_fp32_stops_the_release(
    changes: dict[str, object], code: str
) -> None:
    good, bad = row(FP32, [10.0] * ROUNDS), row(BF16, [1.0] * ROUNDS, **changes)
    chosen, verdict = choose_precision(table(good, bad), TOLERANCES)
    assert (chosen, verdict.outcome) == (FP32, Outcome.WARN)
    assert [finding.code for finding in verdict.findings] == [code]
    fp32, bf16 = row(FP32, [10.0] * ROUNDS, **changes), row(BF16, [1.0] * ROUNDS)
    chosen, verdict = choose_precision(table(fp32, bf16), TOLERANCES)
    assert chosen is None
    absent = code in ("unsupported", "not-measured")
    assert verdict.outcome is (Outcome.ERROR if absent else Outcome.FAIL)


def test_nothing_measured_is_inconclusive() -> None:
    chosen, verdict = choose_precision(table(), TOLERANCES)
    assert (chosen, verdict.outcome) == (None, Outcome.INCONCLUSIVE)
    nobody = row(BF16, [1.0] * ROUNDS, refused="no kernel")
    chosen, verdict = choose_precision(table(nobody), TOLERANCES)
    assert (chosen, verdict.outcome) == (None, Outcome.INCONCLUSIVE)


def test_where_no_candidate_passes_the_release_stops() -> None:
    off = row(BF16, [1.0] * ROUNDS, max_rel=0.5)
    chosen, verdict = choose_precision(table(off), TOLERANCES)
    assert (chosen, verdict.outcome) == (None, Outcome.FAIL)


def test_agreement_on_seeded_inputs_is_listed_and_not_judged() -> None:
    rows = row(FP32, [9.0] * ROUNDS), row(BF16, [1.0] * ROUNDS, tasks=(task(10, 100),))
    chosen, verdict = choose_precision(table(*rows, real_items=0), TOLERANCES)
    assert chosen is BF16
    assert "no-real-data" in {finding.code for finding in verdict.findings}
    assert choose_precision(table(*rows, real_items=100), TOLERANCES)[0] is FP32


def test_throughput_looks_at_the_largest_batch_and_latency_at_the_smallest() -> None:
    def both(precision: Precision, one: float, eight: float) -> PrecisionMeasurement:
        timings = (timing([eight] * ROUNDS, 8), timing([one] * ROUNDS, 1))
        return row(precision, [1.0], timings=timings)

    rows = table(both(FP32, 1.0, 9.0), both(BF16, 2.0, 4.0))
    assert choose_precision(rows, TOLERANCES, objective=Objective.LATENCY)[0] is FP32
    assert choose_precision(rows, TOLERANCES, objective=Objective.THROUGHPUT)[0] is BF16


def test_a_fast_precision_far_off_is_not_worth_a_word_more_than_its_numbers() -> None:
    rows = row(FP32, [10.0] * ROUNDS), row(INT4, [1.0] * ROUNDS, max_rel=0.9)
    chosen, verdict = choose_precision(table(*rows), TOLERANCES)
    (finding,) = verdict.findings
    assert chosen is FP32
    assert (finding.measured, finding.limit) == (0.9, TOLERANCES[INT4].max_rel)
