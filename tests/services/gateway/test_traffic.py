"""The split of requests over two revisions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.traffic import Traffic, slot_of
from validators.contracts.errors import BadInput


@pytest.mark.parametrize("percent", [0, 5, 25, 50, 100])
def test_the_canary_gets_its_share(percent: int) -> None:
    traffic = Traffic("a", "b", percent)
    chosen = [traffic.choose(f"session-{number}") for number in range(4000)]
    assert chosen.count("b") / 40 == pytest.approx(percent, abs=2)


@given(st.text(), st.integers(0, 100), st.integers(0, 100))
def test_a_session_on_the_canary_stays_on_it_as_the_canary_grows(
    key: str, one: int, other: int
) -> None:
    small, large = Traffic("a", "b", min(one, other)), Traffic("a", "b", max(one, other))
    assert small.choose(key) == small.choose(key)
    assert small.choose(key) == "a" or large.choose(key) == "b"


def test_the_place_of_a_key_never_changes() -> None:
    assert slot_of("session-1") == 6604


@pytest.mark.parametrize(
    ("stable", "canary", "percent"),
    [("a", "b", 101), ("a", "b", -1), ("a", None, 5), ("a", "a", 5), (None, "b", 5)],
)
def test_a_split_that_means_nothing_is_refused(
    stable: str | None, canary: str | None, percent: int
) -> None:
    with pytest.raises(BadInput):
        Traffic(stable, canary, percent)


def test_shares_add_up() -> None:
    traffic = Traffic("a", "b", 30)
    assert (traffic.share("a"), traffic.share("b"), traffic.share("c")) == (70, 30, 0)
    assert Traffic().choose("x") is None
