from __future__ import annotations

import pytest

from tests.benchmarks.shape_traces import make_rows, read_trace


@pytest.mark.parametrize("name", ["search", "dialogue", "speech"])
def test_a_committed_trace_is_what_its_seed_makes_and_within_its_bounds(name: str) -> None:
    trace = read_trace(name)
    dims = [bound.name for bound in trace.bounds]
    assert trace.shapes == tuple(dict(zip(dims, row, strict=True)) for row in make_rows(name))
    for bound in trace.bounds:
        sizes = [shape[bound.name] for shape in trace.shapes]
        assert bound.minimum <= min(sizes) <= max(sizes) <= bound.maximum
