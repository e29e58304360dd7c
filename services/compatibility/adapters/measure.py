"""What an adapter is worth on pairs that it was not fitted on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.compatibility.adapters.maps import FittedMap
from services.compatibility.adapters.pairs import AdapterPairs, Split, questions_of
from services.compatibility.bootstrap import estimate_mean, estimate_share
from services.compatibility.geometry import neighbours_of, paired_cosines, similarities
from validators.compatibility.adapters import AdapterKind, AdapterMeasurement

Array = npt.NDArray[Any]
Apply = Callable[[Array], Array]
"""float32 [batch, D_new] → [batch, D_old]."""

TIMED_ROWS = 64


@dataclass(frozen=True, slots=True)
class Described:
    """What is known of a map without running it."""

    kind: AdapterKind
    parameters: int
    detail: str

    @staticmethod
    def of(found: FittedMap) -> Described:
        return Described(found.kind, found.parameters, found.detail)


def measure_adapter(
    described: Described, apply: Apply, pairs: AdapterPairs, split: Split
) -> AdapterMeasurement:
    """Held-out items ask among the old vectors of all items, those of the fit included.

    A map learnt from fewer pairs than dimensions draws what it has not seen toward what it has, and
    a stored index holds both: an index of held-out items alone (`unseen`) hides that.
    """
    every, alone = questions_of(split.held_out, pairs), questions_of(split.held_out, split.held_out)
    adapted = apply(every.asking.astype(np.float32))
    k = neighbours_of(len(every.index))
    ahead = _ahead(adapted, every.index, every.own)
    before = _ahead(every.asking_old, every.index, every.own) < 1
    found = ahead < 1
    index = split.held_out.of(0)
    straight = paired_cosines(apply(index.new.astype(np.float32)), index.old)
    return AdapterMeasurement(
        kind=described.kind,
        fitted=len(split.fitting.items) + len(split.validation.items),
        held_out=len(split.held_out.items),
        neighbours=k,
        first=estimate_share(found),
        within=estimate_share(ahead < k),
        unseen=estimate_share(_ahead(adapted, alone.index, alone.own) < 1),
        old_first=estimate_share(before),
        kept=estimate_share(found[before]),
        flips=estimate_share(before & ~found),
        cosine=estimate_mean(straight),
        latency_ms=_latency_ms(apply, every.asking[:TIMED_ROWS].astype(np.float32)),
        parameters=described.parameters,
        detail=described.detail,
    )


def _ahead(asking: Array, index: Array, own: Array) -> Array:
    """How many of the index are as near as a query's own, or nearer."""
    similar = similarities(asking, index)
    mine = similar[np.arange(len(similar)), own]
    return np.asarray((similar >= mine[:, None]).sum(axis=1) - 1)


def _latency_ms(apply: Apply, rows: Array) -> float:
    took = []
    for row in rows:
        started = time.perf_counter()
        apply(row[None])
        took.append(time.perf_counter() - started)
    return round(float(np.median(took)) * 1e3, 4) if took else 0.0
