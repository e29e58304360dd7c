from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.validators.drift.windows import OTHER_ORIGIN, embedded, make_window
from validators.contracts.verdict import Outcome
from validators.drift.explanation import Explanation, explain
from validators.drift.gate import assess_drift
from validators.drift.window import DriftWindow

ROWS = 400
SECRET = "Adelaide Rosella"


def window(seed: int, **change: Any) -> DriftWindow:
    """Brightness, a label, pictures and captions of one cause, two sensors."""
    generator = np.random.default_rng(seed)
    right = np.arange(ROWS) % 2 == 1
    brightness = generator.normal(140, 10, size=ROWS)
    brightness[right] -= change.get("darker", 0)
    brightness[: change.get("lost", 0)] = np.nan
    cause = generator.normal(size=(ROWS, 6))
    image = np.concatenate([cause, generator.normal(size=(ROWS, 6))], axis=1)
    image[: change.get("odd", 0)] += 4
    text = cause + generator.normal(size=(ROWS, 6)) * 0.5
    swapped = change.get("swapped", 0)
    text[:swapped] = np.roll(text[:swapped], 1, axis=0)
    labels = generator.choice(["cat", "dog"], p=change.get("mix", (0.5, 0.5)), size=ROWS)
    return make_window(
        {"image.brightness": brightness},
        {"image": image, "text": embedded(text, space="text")},
        {"label": labels.tolist()},
        {"sensor": ["right" if is_right else "left" for is_right in right]},
    )


def explained(subject: str, **change: Any) -> Explanation:
    reference, current = window(1), window(2, **change)
    found = explain(assess_drift(reference, current), reference, current)
    return next(item for item in found if item.subject == subject)


def test_a_scalar_tells_its_quantiles_before_and_after() -> None:
    found = explained("image.brightness", darker=40)
    assert found.before[2] == pytest.approx(140, abs=3)
    assert found.after[2] < found.before[2] - 5
    assert "image.brightness went down: its median from 139.5" in found.sentences[0]
    assert found.slices[0][0] == "sensor=right"
    assert set(np.array(found.rows) % 2) == {1}


def test_a_slice_is_explained_by_its_own_rows() -> None:
    found = explained("sensor=right/image.brightness", darker=40)
    assert found.after[2] == pytest.approx(100, abs=4)
    assert set(np.array(found.rows) % 2) == {1}


def test_a_category_tells_what_it_was_and_is() -> None:
    found = explained("label", mix=(0.9, 0.1))
    assert any("label: cat went from 5" in sentence for sentence in found.sentences)
    assert any("to 8" in sentence or "to 9" in sentence for sentence in found.sentences)


def test_a_column_that_went_missing_says_where() -> None:
    found = explained("absence.image.brightness", lost=100)
    assert "from 0.0% to 25.0%" in found.sentences[0]


def test_vectors_name_the_rows_that_differ_most() -> None:
    found = explained("embedding.image", odd=60)
    assert set(found.rows) <= set(range(60))


def test_pairs_give_the_share_with_its_interval() -> None:
    found = explained("pairs.image+text", swapped=120)
    assert "of the pairs (95 % interval" in found.sentences[0]
    assert sum(row < 120 for row in found.rows) >= 8


def test_every_explanation_ends_with_what_to_do_and_holds_no_value() -> None:
    reference = make_window({"x": np.zeros(90)}, categories={"label": [SECRET] * 90})
    current = make_window({"x": np.ones(90)}, categories={"label": [SECRET] * 90})
    found = explain(assess_drift(reference, current), reference, current)
    assert found
    for item in found:
        assert item.sentences[-1].endswith(".")
        assert SECRET not in " ".join(item.sentences)


def test_what_did_not_drift_is_explained_by_its_finding() -> None:
    reference = window(1)
    current = make_window({}, {"image": embedded(np.zeros((ROWS, 12)), origin=OTHER_ORIGIN)})
    found = explain(assess_drift(reference, current), reference, current)
    assert found[0].outcome is Outcome.ERROR
    assert "other-encoder" in found[0].sentences[0]


def test_rows_of_a_large_window_are_those_of_the_window_and_not_of_its_sample() -> None:
    generator = np.random.default_rng(9)
    values = generator.normal(size=30_000)
    values[20_000:] += 9
    reference = make_window({"x": generator.normal(size=3000)})
    current = make_window({"x": values})
    (found,) = explain(assess_drift(reference, current), reference, current)
    assert min(found.rows) >= 20_000
