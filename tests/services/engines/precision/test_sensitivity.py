from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.engines.precision.sensitivity import (
    MAX_RANKED,
    Choice,
    Evaluate,
    Search,
    choose_layers,
)

COSTS = st.lists(st.floats(0, 2, allow_subnormal=False), min_size=1, max_size=40)


def _adding(costs: dict[str, float]) -> Evaluate:
    return lambda chosen: sum(costs[name] for name in chosen)


def _named(costs: list[float]) -> dict[str, float]:
    return {f"layer {number}": cost for number, cost in enumerate(costs)}


def _choose(costs: list[float]) -> Choice:
    named = _named(costs)
    return choose_layers(tuple(named), _adding(named))


@given(COSTS)
def test_what_is_chosen_passes_and_every_layer_is_somewhere(costs: list[float]) -> None:
    choice = _choose(costs)
    named = _named(costs)
    assert sorted((*choice.quantised, *choice.floating)) == sorted(named)
    if choice.quantised:
        assert choice.badness == pytest.approx(_adding(named)(choice.quantised))
        assert choice.badness <= 1
    order = list(named)
    assert list(choice.quantised) == [name for name in order if name in choice.quantised]


@given(COSTS)
def test_nothing_left_in_float_could_be_added(costs: list[float]) -> None:
    """Holds where badness never falls as layers are added."""
    named = _named(costs)
    choice = _choose(costs)
    if choice.quantised:
        for name in choice.floating:
            assert _adding(named)((*choice.quantised, name)) > 1


@given(COSTS)
def test_it_gives_up_only_where_even_the_least_layer_fails(costs: list[float]) -> None:
    if not _choose(costs).quantised:
        assert min(costs) > 1


@given(COSTS)
def test_the_number_of_tries_is_bounded(costs: list[float]) -> None:
    count = len(costs)
    assert _choose(costs).tries <= 3 + 2 * count + 2 * math.log2(count + 1)


@given(st.lists(st.floats(0, 3) | st.just(math.nan), min_size=2, max_size=12), st.integers(0, 99))
def test_a_set_counts_only_where_it_was_measured_itself(noise: list[float], salt: int) -> None:
    """The measure may be anything, NaN too: the answer is a set that was seen to pass."""
    names = tuple(f"layer {number}" for number in range(len(noise)))
    seen: dict[tuple[str, ...], float] = {}

    def measure(chosen: tuple[str, ...]) -> float:
        return seen.setdefault(chosen, noise[(len(chosen) * 7 + salt + len(seen)) % len(noise)])

    choice = choose_layers(names, measure)
    if choice.quantised:
        assert seen[choice.quantised] == choice.badness <= 1


def test_layers_that_hold_together_are_all_taken_at_once() -> None:
    assert _choose([0.25, 0.5]) == Choice(("layer 0", "layer 1"), (), 0.75, 1)


def test_the_worst_layers_go_back_first() -> None:
    choice = _choose([0.1, 5.0, 0.2, 0.9, 0.3])
    assert choice.floating == ("layer 1", "layer 3")


def test_many_layers_are_ranked_with_their_neighbours() -> None:
    costs = [0.0] * (3 * MAX_RANKED)
    costs[100] = 7.0
    choice = _choose(costs)
    assert "layer 100" in choice.floating and len(choice.floating) == 3
    assert choice.tries <= 3 + 2 * MAX_RANKED + 2 * math.log2(MAX_RANKED)


def test_a_screen_of_its_own_ranks_the_layers() -> None:
    calls: list[tuple[str, ...]] = []

    def screen(chosen: tuple[str, ...]) -> float:
        calls.append(chosen)
        return 1.0

    choose_layers(("a", "b"), lambda chosen: 2.0 if len(chosen) == 2 else 0.5, screen=screen)
    assert calls == [("a",), ("b",)]


def test_a_model_without_layers_needs_no_search() -> None:
    assert choose_layers((), lambda chosen: 0.0).quantised == ()


@given(COSTS)
def test_a_promise_is_whole_where_everything_holds_and_less_where_not(costs: list[float]) -> None:
    named = _named(costs)
    search = Search(_adding(named))
    promise = search.promise(tuple(named))
    if sum(costs) <= 1:
        assert len(costs) <= promise <= len(costs) + 1
    else:
        assert 0 <= promise <= len(costs)
    before = search.tries
    search.promise(tuple(named))
    assert search.tries == before  # nothing is measured twice


def test_the_way_with_smaller_errors_promises_more() -> None:
    names = ("a", "b", "c", "d")
    coarse, fine = (Search(_adding(dict.fromkeys(names, error))) for error in (0.9, 0.5))
    assert fine.promise(names) > coarse.promise(names)
