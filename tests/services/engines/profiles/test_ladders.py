from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from services.engines.profiles.bounds import DimBound
from services.engines.profiles.ladders import ladders

bounds = st.lists(st.integers(1, 600), min_size=1, max_size=3).map(
    lambda tops: [DimBound(f"dim{at}", 1, top) for at, top in enumerate(tops)]
)


@given(bounds, st.integers(1, 9))
@settings(max_examples=100, deadline=None)
def test_a_ladder_has_at_most_k_rungs_and_covers_the_bounds(dims: list[DimBound], k: int) -> None:
    grids = list(ladders(dims, k))
    top = tuple(bound.maximum for bound in dims)
    assert [top] in grids
    for grid in grids:
        assert len(grid) <= k
        assert top in grid
        assert all(1 <= size <= most for corner in grid
                   for size, most in zip(corner, top, strict=True))  # fmt: skip


def test_each_rung_is_half_of_the_one_above() -> None:
    grids = [sorted(grid) for grid in ladders([DimBound("tokens", 1, 128)], 4)]
    assert [(16,), (32,), (64,), (128,)] in grids
