from __future__ import annotations

from itertools import pairwise

import pytest

from flows.release.media import spread_out


@pytest.mark.parametrize("total", [1, 2, 65, 500, 4096])
@pytest.mark.parametrize("taken", [8, 32, 64])
def test_every_beginning_is_spread_over_the_whole_data_set(total: int, taken: int) -> None:
    order = spread_out(range(total))
    assert sorted(order) == list(range(total)) and order == spread_out(range(total))
    marks = [-1, *sorted(order[:taken]), total]
    widest = max(after - before for before, after in pairwise(marks))
    assert widest <= max(3 * total / taken, 1)


def test_what_comes_in_turns_is_seen_in_each_of_its_kinds() -> None:
    kinds = [at % 8 for at in spread_out(range(512))[:64]]
    assert min(kinds.count(kind) for kind in range(8)) >= 5
