"""Rows of live requests as a drift window, with the columns of a data set's. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from services.gateway.branches import BranchResult
from services.gateway.revision import LoadedRevision
from validators.contracts.origin import VectorOrigin
from validators.drift.columns import Categories, Embedded, Scalars, as_rows, space_of
from validators.drift.window import DriftWindow


@dataclass(frozen=True, slots=True)
class LiveVector:
    """An encoder's output [D] before any adapter, its space, and who made it."""

    values: npt.NDArray[np.float32]
    space: str
    origin: VectorOrigin


@dataclass(frozen=True, slots=True)
class LiveRow:
    """What is kept of one request. `session` numbers the sessions of one window, no more."""

    measures: Mapping[str, float]
    modalities: Collection[str]
    vectors: Mapping[str, LiveVector]
    tags: Mapping[str, str]
    session: int | None = None


def vector_of(revision: LoadedRevision, modality: str, result: BranchResult) -> LiveVector:
    """The encoder's output, under the origin that it counts as.

    An engine that was measured beside the bundle's own counts as that one, as everywhere else.
    """
    branch = revision.branches[modality].branch
    assert branch.adapter is not None and result.features is not None  # noqa: S101 held by caller
    encoder = revision.encoders[branch.encoder]
    made = result.origins[branch.encoder]
    own = revision.bundle.deployed_engine(branch.encoder).engine
    if frozenset((own, made.engine)) in encoder.engine.siblings:
        made = VectorOrigin(made.encoder, own)
    space = space_of(encoder.contract, branch.adapter.output)
    return LiveVector(result.features, space, made)


def make_window(rows: Sequence[LiveRow], seen: int, from_ms: int, until_ms: int) -> DriftWindow:
    """The window of these rows, out of `seen` that were drawn for it."""
    measures = sorted({name for row in rows for name in row.measures})
    modalities = sorted({name for row in rows for name in row.modalities})
    tags = sorted({name for row in rows for name in row.tags})
    return DriftWindow(
        rows=len(rows),
        descriptors={
            name: Scalars.of([row.measures.get(name, np.nan) for row in rows]) for name in measures
        },
        categories={
            f"presence.{name}": Categories.of(
                ["yes" if name in row.modalities else "no" for row in rows]
            )
            for name in modalities
        },
        embeddings={
            name: _embedded(rows, name) for name in modalities if _having(rows, name)
        },
        tags={name: Categories.of([row.tags.get(name) for row in rows]) for name in tags},
        recordings=_sessions(rows),
        from_ms=from_ms,
        until_ms=until_ms,
        seen=seen,
    )  # fmt: skip


def _having(rows: Sequence[LiveRow], modality: str) -> list[int]:
    return [place for place, row in enumerate(rows) if modality in row.vectors]


def _embedded(rows: Sequence[LiveRow], modality: str) -> Embedded:
    places = _having(rows, modality)
    vectors = [rows[place].vectors[modality] for place in places]
    stacked = np.stack([np.asarray(vector.values, np.float32).reshape(-1) for vector in vectors])
    return Embedded(stacked, as_rows(places), vectors[0].space, vectors[0].origin)


def _sessions(rows: Sequence[LiveRow]) -> npt.NDArray[np.int32]:
    """Rows without a session are each on their own."""
    known = [row.session for row in rows if row.session is not None]
    free = max(known, default=-1) + 1
    numbers = []
    for row in rows:
        numbers.append(free if row.session is None else row.session)
        free += row.session is None
    return np.unique(np.asarray(numbers, np.int64), return_inverse=True)[1].astype(np.int32)
