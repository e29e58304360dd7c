"""Windows of more rows than one machine holds, sketched part by part and joined.

The same functions run here, or on the workers of whatever Dask client is current (the extra `dask`;
a cluster's address in the settings of Dask): a sketch of the same parts is the same everywhere.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from validators.contracts.errors import BadInput, Unavailable
from validators.drift.joining import Siblings
from validators.drift.sketches import Sketch, SketchPlan, merge, sketch
from validators.drift.window import DriftWindow

MERGED_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows, read where they are sketched. `read` is a function that a worker can be sent."""

    read: Callable[[], DriftWindow]
    first_row: int


def sketch_part(part: Part, plan: SketchPlan) -> Sketch:
    return sketch(part.read(), plan, part.first_row)


def sketch_parts(parts: Sequence[Part], plan: SketchPlan, siblings: Siblings = ()) -> Sketch:
    """One sketch of all parts, one after the other, holding one part at a time."""
    _require(parts)
    join = partial(merge, plan=plan, siblings=siblings)
    return reduce(join, (sketch_part(part, plan) for part in parts))


def sketch_parts_on_dask(
    parts: Sequence[Part], plan: SketchPlan, siblings: Siblings = ()
) -> Sketch:
    """The same by Dask, on its current client: parts side by side, joined as a tree.

    Raises:
        Unavailable: Dask is not installed.
    """
    _require(parts)
    try:
        bag = importlib.import_module("dask.bag")
    except ImportError as error:
        raise Unavailable(
            "Dask is not installed", remedy="Install the extra: pip install 'modalgate[dask]'."
        ) from error
    join = partial(merge, plan=plan, siblings=siblings)
    items = bag.from_sequence(parts, npartitions=len(parts))
    found: Sketch = (
        items.map(partial(sketch_part, plan=plan)).fold(join, split_every=MERGED_AT_ONCE).compute()
    )
    return found


def _require(parts: Sequence[Part]) -> None:
    if not parts:
        raise BadInput("no part to sketch", remedy="Name one at least.")
