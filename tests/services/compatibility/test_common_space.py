"""Encoders that meet in a common space: same, rotated, unrelated, collapsed, crashed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from services.compatibility.common_space import Embedded, Meeting, measure_meetings
from services.fusion.adapters import fit_ridge
from validators.compatibility.measured import CompatibilityWord
from validators.compatibility.paired import PairMeasurement
from validators.compatibility.pairing import judge_pair
from validators.contracts.errors import BadInput
from validators.contracts.pipeline import AdapterEntry
from validators.contracts.verdict import Outcome

Array = npt.NDArray[Any]
ITEMS, WIDTH, FEATURES = 400, 16, 24
RANDOM = np.random.default_rng(0)
MEANING = RANDOM.normal(size=(ITEMS, WIDTH))
HELD_OUT = np.arange(ITEMS) % 2 == 0
SEEN = RANDOM.normal(size=(WIDTH, FEATURES))
ROTATION = np.linalg.qr(RANDOM.normal(size=(FEATURES, FEATURES)))[0]
LIVE = MEANING @ SEEN

ROWS = {
    "live": Embedded({"features": LIVE}),
    "noisy": Embedded({"features": LIVE + 0.01 * RANDOM.normal(size=LIVE.shape)}),
    "rotated": Embedded({"features": LIVE @ ROTATION}),
    "unrelated": Embedded({"features": RANDOM.normal(size=LIVE.shape)}),
    "collapsed": Embedded({"features": np.ones_like(LIVE)}),
    "wider": Embedded({"features": np.hstack([LIVE, LIVE])}),
    "broken": Embedded({"features": np.where(np.arange(ITEMS)[:, None] == 3, np.nan, LIVE)}),
    "crashed": Embedded({}, "died of SIGSEGV"),
}
NAMES = list(ROWS)


@pytest.fixture(scope="module")
def measured() -> dict[tuple[int, int], PairMeasurement]:
    data = fit_ridge(LIVE[~HELD_OUT], MEANING[~HELD_OUT])
    meeting = Meeting(
        (AdapterEntry("ridge", "features", "common"), data),
        (AdapterEntry("identity", "vector", "common"), None),
        (0, 0),
        [f"item {at}" for at in range(ITEMS)],
        HELD_OUT,
    )
    return measure_meetings(meeting, list(ROWS.values()), [Embedded({"vector": MEANING})])


@pytest.mark.parametrize(
    ("name", "word", "outcome"),
    [
        ("live", CompatibilityWord.COMPATIBLE, Outcome.PASS),
        ("noisy", CompatibilityWord.COMPATIBLE, Outcome.PASS),
        ("rotated", CompatibilityWord.ADAPTER, Outcome.WARN),
        ("wider", CompatibilityWord.ADAPTER, Outcome.WARN),
        ("unrelated", CompatibilityWord.REINDEX, Outcome.FAIL),
        ("collapsed", CompatibilityWord.BLOCK, Outcome.FAIL),
        ("broken", CompatibilityWord.BLOCK, Outcome.FAIL),
        ("crashed", None, Outcome.ERROR),
    ],
)
def test_each_version_gets_its_word(
    measured: dict[tuple[int, int], PairMeasurement],
    name: str,
    word: CompatibilityWord | None,
    outcome: Outcome,
) -> None:
    judged = judge_pair(measured[NAMES.index(name), 0])
    assert (judged.word, judged.verdict.outcome) == (word, outcome)


def test_what_is_rotated_finds_no_more_than_chance_and_all_of_it_through_a_new_map(
    measured: dict[tuple[int, int], PairMeasurement],
) -> None:
    seen = measured[NAMES.index("rotated"), 0].retrieval
    assert seen is not None
    assert seen.hits < 3 * seen.chance * seen.queries
    assert seen.refitted_hits == seen.reference_hits == seen.queries == HELD_OUT.sum()


def test_equal_captions_answer_for_each_other() -> None:
    vectors = np.eye(16)
    meeting = Meeting(
        (AdapterEntry("identity", "v", "c"), None), (AdapterEntry("identity", "v", "c"), None),
        (0, 0), ["same"] * 16, np.ones(16, bool),
    )  # fmt: skip
    swapped = Embedded({"v": vectors[::-1]})
    found = measure_meetings(meeting, [Embedded({"v": vectors})], [swapped])
    seen = found[0, 0].retrieval
    assert seen is not None and seen.hits == 16


def test_without_a_live_pair_or_held_out_items_there_is_nothing_to_compare_with() -> None:
    entry = AdapterEntry("identity", "v", "c"), None
    one = Embedded({"v": np.eye(4)})
    with pytest.raises(BadInput, match="live pair"):
        measure_meetings(
            Meeting(entry, entry, (0, 0), ["a"] * 4, np.ones(4, bool)), [ROWS["crashed"]], [one]
        )
    with pytest.raises(BadInput, match="held out"):
        measure_meetings(Meeting(entry, entry, (0, 0), ["a"] * 4, np.zeros(4, bool)), [one], [one])
