from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.engines.profiles.choice import (
    KEPT_WITHIN,
    ProfileChoice,
    Seen,
    Shapes,
    choose_profiles,
    keep_or_change,
)
from services.engines.profiles.cost import MemoryModel, linear_work
from services.engines.profiles.footprint import Footprint
from services.engines.profiles.histogram import ShapeHistogram, tally
from tests.services.engines.profiles.model import INPUTS, OUTPUTS
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.engine import Precision, ShapeProfile, ShapeRange
from validators.contracts.errors import TooLarge
from validators.contracts.pipeline import AutoProfiles, EncoderEntry, EncoderSource, SourceKind

DIMS = ("batch", "tokens")
BOUNDS = ShapeProfile(
    tuple(ShapeRange(name, (1, 2), (1, 16), (8, 128)) for name in ("ids", "mask"))
)
CONTRACT = EncoderContract("text", "1.0.0", "text", INPUTS, OUTPUTS, PreprocessSpec("wordpiece"))
FOOTPRINT = Footprint(MemoryModel(linear_work(DIMS), bytes_per_element=1024.0), unsized=0)


def entry(count: int = 4, memory_mb: int | None = None) -> EncoderEntry:
    auto = AutoProfiles(count, memory_mb)
    source = EncoderSource(SourceKind.ONNX, "text.onnx")
    return EncoderEntry(CONTRACT, source, Precision.FP32, (BOUNDS,), auto=auto)


def window(*tokens: int) -> ShapeHistogram:
    return tally(DIMS, [{"batch": 1, "tokens": size} for size in tokens])


def chosen(*windows: ShapeHistogram, count: int = 4, memory_mb: int | None = None) -> ProfileChoice:
    seen = Shapes(Seen.RECORDED, windows)
    return choose_profiles(entry(count, memory_mb), seen, FOOTPRINT)


recordings = st.lists(
    st.lists(st.integers(1, 300), min_size=1, max_size=20).map(lambda sizes: window(*sizes)),
    min_size=1, max_size=4,
)  # fmt: skip


@given(recordings, st.integers(1, 6), st.none() | st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_planned_profiles_cover_the_bounds_within_count_and_memory(
    windows: list[ShapeHistogram], count: int, memory_mb: int | None
) -> None:
    choice = chosen(*windows, count=count, memory_mb=memory_mb)
    assert 1 <= len(choice.profiles) <= count
    assert choice.profiles[-1].covers({"ids": (8, 128), "mask": (8, 128)})
    assert all(item.minimum == (1, 2) for profile in choice.profiles for item in profile.ranges)
    assert choice.plan.padded_work <= choice.one_maximal.padded_work
    assert choice.powers_of_two.profiles <= count
    if memory_mb is not None:
        assert choice.plan.memory_bytes <= memory_mb << 20 == choice.max_bytes
    assert load(ProfileChoice, canonical_json(choice)) == choice


def test_each_profile_says_its_corners_and_its_optimum() -> None:
    choice = chosen(window(9, 9, 9, 12, 40))
    shapes = [
        (item.minimum, item.optimum, item.maximum)
        for profile in choice.profiles for item in profile.ranges if item.tensor == "ids"
    ]  # fmt: skip
    assert shapes == [
        ((1, 2), (1, 9), (1, 9)), ((1, 2), (1, 12), (1, 12)), ((1, 2), (1, 40), (1, 40)),
        ((1, 2), (8, 128), (8, 128)),
    ]  # fmt: skip
    assert [item.requests for item in choice.plan.profiles] == [3, 1, 1, 0]
    assert choice.plan.padded_work == 0
    assert choice.powers_of_two.padded_work > 0


def test_where_nothing_was_seen_the_bounds_stand_as_the_file_says_them() -> None:
    choice = choose_profiles(entry(), Shapes(Seen.BOUNDS, note="nothing was recorded"), FOOTPRINT)
    assert choice.profiles == (BOUNDS,)
    assert (choice.windows, choice.note) == (0, "nothing was recorded")
    assert [item.optimum for item in choice.plan.profiles] == [(1, 16)]


@pytest.mark.parametrize("windows", [(), (window(9),)])
def test_bounds_that_do_not_fit_the_memory_are_refused(
    windows: tuple[ShapeHistogram, ...],
) -> None:
    large = Footprint(MemoryModel(linear_work(DIMS), bytes_per_element=2048.0), unsized=0)
    with pytest.raises(TooLarge, match="largest profile alone"):
        choose_profiles(entry(memory_mb=1), Shapes(Seen.RECORDED, windows), large)


@given(recordings, recordings)
@settings(max_examples=50, deadline=None)
def test_profiles_change_only_for_a_saving_that_is_worth_it(
    past: list[ShapeHistogram], present: list[ShapeHistogram]
) -> None:
    before, new = chosen(*past), chosen(*present)
    settled = keep_or_change(new, before, AutoProfiles())
    if settled.kept:
        assert settled.profiles == before.profiles
        work = [plan.useful_work + plan.padded_work for plan in (settled.plan, new.plan)]
        assert work[0] <= KEPT_WITHIN * work[1]
        optima = [item.optimum for item in settled.plan.profiles]
        assert optima == [item.optimum for item in before.plan.profiles]
    else:
        assert settled == new
    assert keep_or_change(settled, settled, AutoProfiles()) == settled


def test_a_little_other_traffic_changes_nothing_and_much_other_traffic_does() -> None:
    before = chosen(window(*[9] * 100, *[40] * 100))
    alike = chosen(window(*[9] * 100, *[40] * 98, 39, 39))
    assert keep_or_change(alike, before, AutoProfiles()).kept
    other = chosen(window(*[60] * 100))
    assert keep_or_change(other, before, AutoProfiles()) == other


def test_traffic_that_is_gone_is_no_reason_to_change() -> None:
    before = chosen(window(9, 40))
    nothing = choose_profiles(entry(), Shapes(Seen.BOUNDS), FOOTPRINT)
    assert keep_or_change(nothing, before, AutoProfiles()).profiles == before.profiles


@pytest.mark.parametrize(
    "new",
    [
        chosen(window(9, 9, 39), count=2),
        chosen(window(9, 9, 39), memory_mb=8),
        choose_profiles(
            dataclasses.replace(
                entry(),
                profiles=(ShapeProfile(tuple(dataclasses.replace(item, maximum=(8, 64))
                                             for item in BOUNDS.ranges)),),
            ),
            Shapes(Seen.RECORDED, (window(9, 9, 39),)),
            FOOTPRINT,
        ),
    ],
    ids=["fewer", "less memory", "other bounds"],
)  # fmt: skip
def test_what_the_file_no_longer_allows_is_not_kept(new: ProfileChoice) -> None:
    before = chosen(window(9, 9, 40))
    assert not keep_or_change(new, before, AutoProfiles(count=2)).kept
