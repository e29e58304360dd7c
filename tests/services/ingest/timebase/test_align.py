from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.timebase.align import (
    REORDER_DEPTH,
    Outcome,
    Placement,
    Stamp,
    align,
    blend,
    place,
)
from services.ingest.timebase.rule import TARGETS, Rule, rule_of
from services.ingest.timebase.ticks import NS_PER_MS, NS_PER_S, Ticks, ticks_over
from validators.contracts.errors import BadInput
from validators.contracts.modality import Gap, Modality

MS = NS_PER_MS
RULES = st.builds(
    Rule,
    gap=st.sampled_from(Gap),
    tolerance_ns=st.integers(1, 100).map(lambda value: value * MS),
    hold_ns=st.integers(1, 500).map(lambda value: value * MS),
    numeric=st.booleans(),
    periodic=st.booleans(),
)
TIMES = st.lists(st.integers(0, 3000), max_size=40).map(
    lambda found: [Stamp(value * MS, index) for index, value in enumerate(sorted(found))]
)
TICKS = Ticks(Fraction(30), 60)


@given(st.dictionaries(st.sampled_from("abc"), st.tuples(TIMES, RULES), min_size=1))
def test_every_tick_of_every_track_is_decided_exactly_once(
    tracks: dict[str, tuple[list[Stamp], Rule]],
) -> None:
    rows = list(align(TICKS, {name: stamps for name, (stamps, _) in tracks.items()},
                      {name: rule for name, (_, rule) in tracks.items()}))  # fmt: skip
    assert [tick for tick, _ in rows] == list(TICKS)
    assert all(row.keys() == tracks.keys() for _, row in rows)


@given(TIMES, RULES)
def test_what_is_placed_is_within_its_bounds_and_its_offset_is_item_less_tick(
    stamps: list[Stamp], rule: Rule
) -> None:
    times = {stamp.index: stamp.ts_ns for stamp in stamps}
    for tick, row in align(TICKS, {"a": stamps}, {"a": rule}):
        found = row["a"]
        if found.outcome in (Outcome.TAKEN, Outcome.HELD):
            assert found.first is not None
            assert found.offset_ns == times[found.first] - tick
        if found.outcome is Outcome.TAKEN:
            assert abs(found.offset_ns or 0) <= rule.tolerance_ns
        if found.outcome is Outcome.HELD:
            assert rule.gap is Gap.HOLD
            assert 0 < -(found.offset_ns or 0) <= rule.hold_ns
        if found.outcome is Outcome.INTERPOLATED:
            assert rule.gap is Gap.INTERPOLATE
            assert rule.numeric
            assert found.first is not None and found.second is not None
            before, after = times[found.first], times[found.second]
            assert before < tick < after
            assert max(tick - before, after - tick) <= rule.tolerance_ns
            assert round(before + found.share * (after - before)) == tick
        if found.outcome in (Outcome.DROPPED, Outcome.REFUSED):
            assert min(abs(ts - tick) for ts in times.values()) > rule.tolerance_ns
            assert rule.periodic
        if found.outcome is Outcome.REFUSED:
            assert rule.gap is Gap.REFUSE


@given(TIMES, RULES, st.integers(0, 2**32))
def test_the_order_in_which_items_come_changes_nothing(
    stamps: list[Stamp], rule: Rule, seed: int
) -> None:
    assert len(stamps) <= REORDER_DEPTH
    mixed = random.Random(seed).sample(stamps, len(stamps))
    assert list(align(TICKS, {"a": mixed}, {"a": rule})) == list(
        align(TICKS, {"a": stamps}, {"a": rule})
    )


@given(TIMES, TIMES, RULES, RULES)
def test_tracks_do_not_disturb_each_other(
    first: list[Stamp], second: list[Stamp], one: Rule, two: Rule
) -> None:
    both = list(align(TICKS, {"b": second, "a": first}, {"a": one, "b": two}))
    alone = list(align(TICKS, {"a": first}, {"a": one}))
    assert [row["a"] for _, row in both] == [row["a"] for _, row in alone]


@given(st.integers(-30, 30), st.sampled_from(["video", "audio"]))
def test_an_item_before_its_tick_is_a_lag_and_its_offset_negative(ms: int, track: str) -> None:
    rule = rule_of(track, periodic=True)
    found = place(NS_PER_S, Stamp(NS_PER_S + ms * MS, 7) if ms <= 0 else None,
                  Stamp(NS_PER_S + ms * MS, 7) if ms > 0 else None, rule)  # fmt: skip
    assert found == Placement(Outcome.TAKEN, 7, offset_ns=ms * MS)


@pytest.mark.parametrize(
    ("gap", "periodic", "outcome"),
    [
        (Gap.DROP, True, Outcome.DROPPED),
        (Gap.INTERPOLATE, True, Outcome.DROPPED),
        (Gap.REFUSE, True, Outcome.REFUSED),
        (Gap.HOLD, True, Outcome.HELD),
        (Gap.DROP, False, Outcome.NONE),
        (Gap.REFUSE, False, Outcome.NONE),
        (Gap.HOLD, False, Outcome.HELD),
    ],
)
def test_the_declared_policy_decides_in_a_gap(gap: Gap, periodic: bool, outcome: Outcome) -> None:
    rule = Rule(gap, 40 * MS, 150 * MS, periodic=periodic)
    before, after = Stamp(900 * MS, 1), Stamp(1400 * MS, 2)
    assert place(NS_PER_S, before, after, rule).outcome is outcome
    late = place(1200 * MS, before, after, rule).outcome
    assert late is not Outcome.HELD, "a held item has a greatest age"


def test_outside_of_a_track_nothing_is_due_but_what_is_held() -> None:
    rule = Rule(Gap.REFUSE, 40 * MS, 150 * MS)
    assert place(0, None, Stamp(500 * MS, 0), rule).outcome is Outcome.NONE
    assert place(NS_PER_S, Stamp(500 * MS, 9), None, rule).outcome is Outcome.NONE


@pytest.mark.parametrize("hours", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_hours_of_a_rational_rate_do_not_drift_apart(hours: int) -> None:
    """29.97 frames/s onto 30 ticks/s and 100 features/s: the last tick is as near as the first."""
    span = hours * 3600 * NS_PER_S
    film = Ticks(Fraction(30_000, 1001), 1)
    frames = (Stamp(film.at(i), i) for i in range(span * 30_000 // (1001 * NS_PER_S) + 2))
    audio = (Stamp(i * 10 * MS, i) for i in range(span // (10 * MS) + 1))
    rules = {name: rule_of(name, periodic=True) for name in ("video", "audio")}
    sparse = [at for i, at in enumerate(ticks_over(Fraction(30), 0, span)) if i % 997 == 0]
    for tick, row in align(sparse, {"video": frames, "audio": audio}, rules):
        assert row["video"].outcome is row["audio"].outcome or row["video"].first is not None
        assert abs(row["video"].offset_ns or 0) <= 16_700_000, tick
        assert row["audio"].first is not None
        assert abs(row["audio"].first * 10 * MS - tick) <= 10 * MS


def test_the_targets_are_those_that_are_promised() -> None:
    found = {name: (float(item.rate_hz), item.tolerance_ms) for name, item in TARGETS.items()}
    assert found["video"] == (30, 33)
    assert found["audio"] == (25, 40)
    assert found["document"] == (25, 200)


def test_a_declared_modality_and_tolerance_replace_the_usual_ones() -> None:
    declared = {"audio": Modality("audio", gap=Gap.HOLD, hold_ms=70)}
    rule = rule_of("audio", periodic=True, modalities=declared, tolerance_ms={"audio": 15})
    assert (rule.gap, rule.hold_ns, rule.tolerance_ns) == (Gap.HOLD, 70 * MS, 15 * MS)


def test_numbers_are_blended_and_texts_never() -> None:
    assert blend({"x": 1.0, "y": 0.0}, {"x": 3.0}, 0.25) == {"x": 1.5}
    assert np.allclose(np.asarray(blend(np.zeros(3), np.full(3, 8), 0.5)), 4)
    with pytest.raises(BadInput, match="text is never interpolated"):
        blend("half", "a text", 0.5)
