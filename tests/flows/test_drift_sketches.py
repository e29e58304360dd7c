from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from flows.drift_sketches import Part, sketch_parts, sketch_parts_on_dask
from tests.validators.drift.windows import make_window
from validators.contracts.errors import BadInput
from validators.drift.sketches import Sketch, SketchPlan
from validators.drift.window import DriftWindow
from validators.drift.window_file import write_window

ROWS = 400


def rows(part: int) -> DriftWindow:
    generator = np.random.default_rng(part)
    return make_window(
        {"x": generator.normal(size=ROWS)},
        {"image": generator.normal(size=(ROWS, 8))},
        {"label": generator.choice(["a", "b"], size=ROWS).tolist()},
    )


PLAN = SketchPlan.of(rows(0), sample_rows=300)
PARTS = [Part(partial(rows, part), part * ROWS) for part in range(20)]


def written(found: Sketch) -> tuple[object, ...]:
    counts = {
        name: (item.absent, item.below.tolist(), dict(item.words))
        for name, item in found.counts.items()
    }
    return found.rows, found.numbers.tolist(), counts, write_window(found.sample)


@pytest.mark.slow
def test_dask_makes_the_identical_sketch() -> None:
    distributed = pytest.importorskip("distributed")
    here = sketch_parts(PARTS, PLAN)
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None
    ):
        there = sketch_parts_on_dask(PARTS, PLAN)
    assert written(there) == written(here)
    np.testing.assert_allclose(there.means["image"][0], here.means["image"][0], rtol=1e-12)


def test_no_parts_have_no_sketch() -> None:
    with pytest.raises(BadInput):
        sketch_parts([], PLAN)
