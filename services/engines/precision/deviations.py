"""How far a candidate is from the model it was made of, in units of the tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from services.engines.parity import deviation
from services.engines.tensors import Arrays
from validators.contracts.engine import Tolerance


def worst_deviation(
    reference: Sequence[Arrays], found: Sequence[Arrays], tolerance: Tolerance
) -> float:
    """The worst case and output; at most 1 is within the tolerance, NaN and infinity are inf."""
    worst = 0.0
    for wanted, got in zip(reference, found, strict=True):
        for name in wanted:
            item = deviation("hold-out", name, wanted[name], got[name])
            if item.nonfinite:
                return math.inf
            relative = item.max_rel / tolerance.max_rel
            turned = (1 - item.cosine_min) / (1 - tolerance.cosine_min)
            worst = max(worst, relative, turned)
    return worst
