"""The matrix of the committed example: text 2.1.0 and 2.1.1 by vision 1.8.3 and 1.8.4."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import flows
from flows.examples.incident.requests import make_requests
from flows.interruption import told_to_end
from flows.progress import reporter
from services.compatibility.pair_request import Part
from services.compatibility.pairs import PRECISIONS, PairPlan, measure_pairs
from validators.compatibility.matrix import CompatibilityMatrix, Role, Version, fill
from validators.contracts.engine import Precision

REQUESTS = 320
"""299 without a fault show a rate under 1 %."""

_EXAMPLE = "flows.examples.incident"

TEXTS = (Version("text", "2.1.0", Role.LIVE), Version("text", "2.1.1", Role.CANDIDATE))
VISIONS = (Version("vision", "1.8.3", Role.LIVE), Version("vision", "1.8.4", Role.CANDIDATE))


def incident_matrix(
    workdir: Path,
    *,
    requests: int = REQUESTS,
    precisions: Sequence[Precision] = PRECISIONS,
) -> CompatibilityMatrix:
    """Run the four pairs in children of their own, judge them, and attach their names.

    Raises:
        Unavailable: the packages of the reference extra are not installed.
    """
    plan = PairPlan(
        rows=tuple(_part("text", version, "ids") for version in TEXTS),
        columns=tuple(_part("vision", version, "pixels") for version in VISIONS),
        join=f"{_EXAMPLE}.fusion:Fusion",
        base=Path(flows.__file__).parents[1],
    )
    measured = measure_pairs(
        plan,
        make_requests(requests),
        workdir,
        precisions=precisions,
        advanced=lambda done, total, what: reporter().advanced("pairs", done, total, what),
        cancel=told_to_end,
    )
    return fill("incident", TEXTS, VISIONS, measured)


def _part(module: str, version: Version, *inputs: str) -> Part:
    name = f"{module}_{version.version.replace('.', '_')}"
    return Part(f"{_EXAMPLE}.{module}:{name}", inputs)
