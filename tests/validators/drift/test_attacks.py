"""Windows that nobody should ever record, each with one clear outcome."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tests.validators.drift.windows import ORIGIN, OTHER_ORIGIN, embedded, make_window
from validators.contracts.digest import digest_bytes, short
from validators.contracts.origin import VectorOrigin
from validators.contracts.verdict import Outcome, Verdict
from validators.drift.gate import assess_drift
from validators.drift.window import DriftWindow, take

ROWS = 200


def said(verdict: Verdict) -> set[tuple[str, str]]:
    return {(item.code, item.subject) for item in verdict.findings}


def scalars(seed: int, rows: int = ROWS) -> npt.NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=rows)


def vectors(seed: int, rows: int = ROWS) -> npt.NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(rows, 8))


def window(seed: int, rows: int = ROWS) -> DriftWindow:
    return make_window({"x": scalars(seed, rows)}, {"image": vectors(seed + 100, rows)})


def test_one_sample_decides_nothing() -> None:
    verdict = assess_drift(window(1), window(2, 1))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert said(verdict) == {("too-few-samples", "x"), ("too-few-samples", "embedding.image")}


def test_a_window_without_rows_decides_nothing() -> None:
    verdict = assess_drift(window(1), take(window(2), []))
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_a_column_that_is_all_nan_has_drifted_into_absence() -> None:
    nothing = make_window({"x": np.full(ROWS, np.nan), "y": scalars(4)})
    verdict = assess_drift(make_window({"x": scalars(1), "y": scalars(2)}), nothing)
    assert verdict.outcome is Outcome.FAIL
    assert ("drifted", "absence.x") in said(verdict)
    assert dict(verdict.metrics)["effect.absence.x"] == pytest.approx(1)


def test_a_column_that_is_nan_in_both_windows_was_never_measured() -> None:
    nothing = make_window({"x": np.full(ROWS, np.nan)})
    verdict = assess_drift(nothing, nothing)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert said(verdict) == {("too-few-samples", "x")}


@pytest.mark.parametrize(("now", "outcome"), [(3.0, Outcome.PASS), (4.0, Outcome.FAIL)])
def test_a_constant_passes_until_it_is_another_constant(now: float, outcome: Outcome) -> None:
    verdict = assess_drift(
        make_window({"x": np.full(ROWS, 3.0)}), make_window({"x": np.full(ROWS, now)})
    )
    assert verdict.outcome is outcome


def test_a_constant_embedding_passes_until_it_moves() -> None:
    still = make_window({}, {"image": np.ones((ROWS, 4))})
    assert assess_drift(still, still).outcome is Outcome.PASS
    moved = make_window({}, {"image": np.full((ROWS, 4), 2.0)})
    assert assess_drift(still, moved).outcome is Outcome.FAIL


def test_a_category_never_seen_is_named() -> None:
    before = make_window(categories={"label": ["cat", "dog"] * (ROWS // 2)})
    few = make_window(categories={"label": ["cat", "dog"] * (ROWS // 2 - 5) + ["yak"] * 10})
    many = make_window(categories={"label": ["cat", "dog", "yak", "yak"] * (ROWS // 4)})
    rare = assess_drift(before, few)
    assert rare.outcome is Outcome.WARN
    assert said(rare) == {("new-category", "label=yak")}
    common = assess_drift(before, many)
    assert common.outcome is Outcome.FAIL
    assert said(common) == {("new-category", "label=yak"), ("drifted", "label")}


def test_categories_are_compared_by_name_and_not_by_their_order() -> None:
    words = np.random.default_rng(6).choice(["a", "b", "c"], size=(2, ROWS), p=[0.2, 0.3, 0.5])
    before = make_window(categories={"label": words[0].tolist()})
    with_more = make_window(categories={"label": ["A", *words[1].tolist()[1:]]})
    assert before.categories["label"].vocabulary != with_more.categories["label"].vocabulary
    assert assess_drift(before, with_more).outcome is Outcome.PASS
    renamed = [{"a": "c", "b": "b", "c": "a"}[word] for word in words[1].tolist()]
    verdict = assess_drift(before, make_window(categories={"label": renamed}))
    assert verdict.outcome is Outcome.FAIL


def test_scores_whose_classes_changed_their_order_have_drifted() -> None:
    generator = np.random.default_rng(7)
    scores = generator.dirichlet([8, 4, 2, 1], size=2 * ROWS)
    before = make_window({}, {"image": scores[:ROWS]})
    assert assess_drift(before, make_window({}, {"image": scores[ROWS:]})).outcome is Outcome.PASS
    turned = make_window({}, {"image": scores[ROWS:, ::-1]})
    assert assess_drift(before, turned).outcome is Outcome.FAIL


def test_a_window_of_few_rows_told_many_times_decides_nothing() -> None:
    repeated = np.tile(np.arange(10), 40)
    few = take_with_repeats(window(2), repeated)
    verdict = assess_drift(window(1), few)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert {("repeated-rows", "window"), ("too-few-independent", "window")} <= said(verdict)


def test_rows_told_three_times_each_count_once() -> None:
    verdict = assess_drift(window(1), take_with_repeats(window(2), np.repeat(np.arange(100), 3)))
    assert verdict.outcome is Outcome.WARN
    assert said(verdict) == {("repeated-rows", "window")}
    assert dict(verdict.metrics)["independent_current"] == 100


def take_with_repeats(given: DriftWindow, rows: npt.NDArray[np.int_]) -> DriftWindow:
    return make_window(
        {name: column.values[rows] for name, column in given.descriptors.items()},
        {name: column.vectors[rows] for name, column in given.embeddings.items()},
    )


def test_a_jump_of_the_time_zone_is_noticed_and_drift_is_judged_all_the_same() -> None:
    times = np.arange(ROWS, dtype=np.int64) * 1000
    jumped = np.where(np.arange(ROWS) < ROWS // 2, times, times + 7_200_000)
    span = {"from_ms": 0, "until_ms": int(times[-1])}
    late = make_window({"x": scalars(2)}, times_ms=jumped, **span)
    verdict = assess_drift(make_window({"x": scalars(1)}, times_ms=times, **span), late)
    assert verdict.outcome is Outcome.WARN
    (finding,) = verdict.findings
    assert (finding.code, finding.measured) == ("impossible-time", "7200 s outside of its span")


def test_a_window_of_another_encoder_version_is_refused_and_not_compared() -> None:
    moved = vectors(2) + 9
    verdict = assess_drift(
        make_window({"x": scalars(1)}, {"image": vectors(1)}),
        make_window({"x": scalars(2)}, {"image": embedded(moved, origin=OTHER_ORIGIN)}),
    )
    assert verdict.outcome is Outcome.ERROR
    (finding,) = verdict.findings
    assert (finding.code, finding.subject) == ("other-encoder", "embedding.image")
    assert short(ORIGIN.encoder) in str(finding.limit)
    assert short(OTHER_ORIGIN.encoder) in str(finding.measured)
    assert "Encode the reference's data again" in finding.remedy
    assert "effect.embedding.image" not in dict(verdict.metrics)
    assert "effect.x" in dict(verdict.metrics)


def test_engines_that_passed_parity_with_one_source_are_compared() -> None:
    sibling = VectorOrigin(ORIGIN.encoder, digest_bytes(b"the same, compiled elsewhere"))
    before = make_window({}, {"image": vectors(1)})
    now = make_window({}, {"image": embedded(vectors(2), origin=sibling)})
    pairs = {frozenset((ORIGIN.engine, sibling.engine))}
    assert assess_drift(before, now).outcome is Outcome.ERROR
    assert assess_drift(before, now, siblings=pairs).outcome is Outcome.PASS


def test_a_reference_of_the_first_format_decides_nothing() -> None:
    old = DriftWindow(ROWS, format=1, embeddings={"image": embedded(vectors(1), origin=None)})
    verdict = assess_drift(old, window(2))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    (finding,) = verdict.findings
    assert finding.code == "no-origin"
    assert "has no origin" in str(finding.measured)
