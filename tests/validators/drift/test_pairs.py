from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from tests.validators.drift.windows import embedded, make_window
from validators.contracts.verdict import Outcome, Verdict
from validators.drift.gate import assess_drift
from validators.drift.settings import DriftSettings
from validators.drift.window import DriftWindow

SIZE, HIDDEN = 48, 16
_MAPS = np.random.default_rng(3).normal(size=(2, HIDDEN, SIZE))


def pairs(
    seed: int, rows: int = 500, swapped: float = 0.0, noise: float = 3.0, space: str = "other"
) -> DriftWindow:
    """Image and text of one hidden cause each; a share of the texts goes to the next image."""
    generator = np.random.default_rng(seed)
    hidden = generator.normal(size=(rows, HIDDEN)) * np.arange(1, HIDDEN + 1) ** -0.4
    image, text = (
        hidden @ _MAPS[place if space == "other" else 0]
        + generator.normal(size=(rows, SIZE)) * noise
        for place in (0, 1)
    )
    count = int(swapped * rows)
    text[:count] = np.roll(text[:count], 1, axis=0)
    return make_window({}, {"image": embedded(image), "text": embedded(text, space=space)})


def found(verdict: Verdict) -> set[str]:
    return {item.subject for item in verdict.findings if item.outcome is Outcome.FAIL}


@pytest.mark.parametrize("space", ["other", "common"])
def test_a_fifth_of_swapped_pairs_is_caught_while_both_margins_stay(space: str) -> None:
    verdict = assess_drift(pairs(1, space=space), pairs(2, swapped=0.2, space=space))
    assert found(verdict) == {"pairs.image+text"}
    share = dict(verdict.metrics)["effect.pairs.image+text"]
    assert share == pytest.approx(0.2, abs=0.06)


@pytest.mark.parametrize("space", ["other", "common"])
def test_pairs_that_still_belong_together_pass(space: str) -> None:
    verdict = assess_drift(pairs(3, space=space), pairs(4, space=space))
    assert verdict.outcome is Outcome.PASS
    assert dict(verdict.metrics)["p.pairs.image+text"] > 0.01


def test_modalities_that_never_told_of_each_other_have_nothing_to_lose() -> None:
    unrelated = [pairs(seed, swapped=1.0) for seed in (5, 6)]
    verdict = assess_drift(*unrelated)
    assert verdict.outcome is Outcome.PASS
    assert dict(verdict.metrics)["unrelated_pairs"] == 1


def test_only_rows_with_both_modalities_are_pairs() -> None:
    half = np.arange(0, 500, 2)
    windows = []
    for window in (pairs(7), pairs(8, swapped=0.4)):
        text = window.embeddings["text"]
        windows.append(
            make_window(
                {},
                {
                    "image": window.embeddings["image"],
                    "text": embedded(text.vectors[half], half, space="other"),
                },
            )
        )
    assert "pairs.image+text" in found(assess_drift(*windows))


@pytest.mark.slow
def test_most_windows_with_a_fifth_swapped_are_caught_and_hardly_any_without() -> None:
    def fails(swapped: float) -> int:
        return sum(
            assess_drift(
                pairs(2 * seed, noise=4.0), pairs(2 * seed + 1, swapped=swapped, noise=4.0)
            ).outcome
            is Outcome.FAIL
            for seed in range(12)
        )

    assert fails(0.2) >= 11
    assert fails(0.0) <= stats.binom.ppf(1 - 1e-4, 12, 0.01)


@pytest.mark.heavy
def test_swapped_pairs_alarm_no_more_often_than_promised_where_nothing_was_swapped() -> None:
    bare = DriftSettings(false_alarm_rate=0.05, vector_effect=0.0, pair_effect=0.0)

    def p_value(seed: int) -> float:
        verdict = assess_drift(pairs(2 * seed, 60), pairs(2 * seed + 1, 60), bare)
        return dict(verdict.metrics).get("p.pairs.image+text", 1.0)

    alarms = sum(p_value(seed) <= 0.05 for seed in range(600))
    assert alarms <= stats.binom.ppf(1 - 1e-4, 600, 0.05)


def vectors(window: DriftWindow, modality: str) -> npt.NDArray[np.float32]:
    return window.embeddings[modality].vectors


def test_swapping_leaves_each_modality_as_it_was() -> None:
    straight, swapped = pairs(9), pairs(9, swapped=0.2)
    for modality in ("image", "text"):
        one, other = (np.sort(vectors(item, modality), axis=0) for item in (straight, swapped))
        np.testing.assert_array_equal(one, other)
