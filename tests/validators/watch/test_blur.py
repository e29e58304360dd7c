"""Pictures that are kept show distributions and nobody's own figures."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.validators.drift.windows import make_window
from validators.watch.blur import GROUP, blurred

finite = st.floats(-1e6, 1e6)
columns = arrays.arrays(np.float64, st.integers(1, 80), elements=finite)


@given(columns, columns)
def test_values_are_means_of_groups_and_their_sum_stays(
    before: np.ndarray, now: np.ndarray
) -> None:
    reference, live = (make_window({"a": values}) for values in (before, now))
    found = [window.descriptors["a"].values for window in blurred(reference, live)]
    pooled = np.concatenate(found)
    assert [len(item) for item in found] == [len(before), len(now)]
    assert np.isclose(pooled.sum(), before.sum() + now.sum(), atol=1e-3)
    _, counts = np.unique(pooled.round(6), return_counts=True)
    assert min(counts) >= min(GROUP, len(pooled))


def test_rows_do_not_stay_together() -> None:
    drawn = np.random.default_rng(1).normal(size=400)
    reference, live = (make_window({"a": drawn, "b": drawn}) for _ in range(2))
    _, now = blurred(reference, live)
    alike = np.corrcoef(now.descriptors["a"].values, now.descriptors["b"].values)[0, 1]
    assert abs(alike) < 0.3
    spread = now.descriptors["a"].values.std()
    assert np.isclose(spread, drawn.std(), rtol=0.05), "what is seen of the distribution is true"


def test_what_a_row_lacks_stays_lacking() -> None:
    reference = make_window({"a": [1.0] * 20})
    live = make_window({"a": [2.0] * 10 + [np.nan] * 10})
    _, now = blurred(reference, live)
    assert int(now.descriptors["a"].present.sum()) == 10
