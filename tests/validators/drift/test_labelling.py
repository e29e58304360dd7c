from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from validators.drift.labelling import Units, draw_memberships

UNITS = st.tuples(
    st.lists(st.integers(0, 4), min_size=1, max_size=12),
    st.lists(st.integers(0, 4), min_size=1, max_size=12),
)


@given(UNITS, st.integers(0, 100))
def test_a_unit_moves_as_a_whole_and_units_keep_their_number(
    rows: tuple[list[int], list[int]], seed: int
) -> None:
    units = Units.of(np.array(rows[0]), np.array(rows[1]))
    drawn = draw_memberships(units, 20, seed)
    assert drawn[0].tolist() == [0.0] * len(rows[0]) + [1.0] * len(rows[1])
    for labels in drawn:
        members = {unit: set(labels[units.unit == unit]) for unit in set(units.unit.tolist())}
        assert all(len(member) == 1 for member in members.values())
        assert sum(member == {1.0} for member in members.values()) == units.current


def test_rows_on_their_own_are_drawn_alike() -> None:
    drawn = draw_memberships(Units.of_rows(30, 10), 4000, 1)
    assert set(drawn.sum(axis=1).tolist()) == {10.0}
    np.testing.assert_allclose(drawn[1:].mean(axis=0), 0.25, atol=0.04)


def test_the_same_seed_draws_the_same() -> None:
    units = Units.of_rows(9, 7)
    first, again, other = (draw_memberships(units, 50, seed) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_a_slice_keeps_the_units_of_its_rows() -> None:
    units = Units.of(np.array([0, 0, 1, 2]), np.array([0, 1, 1]))
    inside = units.within(np.array([0, 1, 3, 5, 6]))
    assert (inside.reference, inside.current) == (2, 1)
    assert inside.unit.tolist() == [0, 0, 1, 2, 2]
