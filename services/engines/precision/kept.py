"""Does a narrower engine still decide as its source model does? Pure.

For an embedding a decision is the nearest other item, for logits the largest class. What has no
decision of its own (features, caches) is judged by parity alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from services.engines.tensors import Arrays
from services.fusion.recall import wilson_interval
from validators.contracts.encoder import EncoderContract
from validators.contracts.tensors import Meaning
from validators.precision.words import TaskMetric

NEIGHBOURS = 10
SAME = 1e-6
"""Cosines of the source closer than this are a tie: either neighbour is right."""

Array = npt.NDArray[Any]


def tasks_kept(
    contract: EncoderContract,
    source: Sequence[Arrays],
    engine: Sequence[Arrays],
    judged: Sequence[int] | None = None,
) -> tuple[TaskMetric, ...]:
    """One metric for each output that decides something, over the answers to the same items.

    `judged` are the positions whose decisions count, all unless given (what an engine was
    calibrated on does not); the others are still neighbours to choose from.
    """
    picked = range(len(source)) if judged is None else judged
    return tuple(_measure(contract, source, engine, picked))


def _measure(
    contract: EncoderContract,
    source: Sequence[Arrays],
    engine: Sequence[Arrays],
    judged: Sequence[int],
) -> Iterator[TaskMetric]:
    for spec in contract.outputs:
        wanted = [np.asarray(answer[spec.name], np.float64) for answer in source]
        found = [np.asarray(answer[spec.name], np.float64) for answer in engine]
        if spec.meaning is Meaning.LOGITS and judged:
            yield _classes(spec.name, [wanted[at] for at in judged], [found[at] for at in judged])
        if spec.meaning is Meaning.GLOBAL_EMBEDDING:
            a, b = _rows(wanted), _rows(found)
            counted = _counted(wanted, judged)
            if len(a) > 1 and counted.any():
                yield _neighbours(spec.name, a, b, counted)


def _classes(output: str, wanted: Sequence[Array], found: Sequence[Array]) -> TaskMetric:
    """Largest class along the last axis. Where the source has several, any of them is right."""
    kept = items = 0
    for a, b in zip(wanted, found, strict=True):
        chosen = np.take_along_axis(a, _largest(b)[..., None], axis=-1)[..., 0]
        right = np.isfinite(b).all(axis=-1) & (chosen == a.max(axis=-1))
        kept, items = kept + int(right.sum()), items + right.size
    return TaskMetric("top-1 agreement", output, items, kept, *wilson_interval(kept, items))


def _largest(values: Array) -> npt.NDArray[np.int64]:
    largest: npt.NDArray[np.int64] = np.argmax(np.where(np.isnan(values), -np.inf, values), axis=-1)
    return largest


def _neighbours(
    output: str, wanted: Array, found: Array, counted: npt.NDArray[np.bool_]
) -> TaskMetric:
    """The nearest other item by cosine, and how many of the nearest ten stay among them."""
    cosines, theirs = _cosines(wanted)[counted], _cosines(found)[counted]
    items = len(cosines)
    nearest = theirs.argmax(axis=1)
    loss = cosines.max(axis=1) - cosines[np.arange(items), nearest]
    kept = int(((loss <= SAME) & np.isfinite(found[counted]).all(axis=1)).sum())
    k = min(NEIGHBOURS, len(wanted) - 1)
    # the source's k-th cosine is the bar: whoever reaches it belongs, ties included
    bar = np.sort(cosines, axis=1)[:, -k][:, None] - SAME
    picked = np.argsort(-theirs, axis=1, kind="stable")[:, :k]
    overlap = float((np.take_along_axis(cosines, picked, axis=1) >= bar).mean())
    return TaskMetric(
        "nearest neighbour kept", output, items, kept, *wilson_interval(kept, items),
        overlap=overlap,
    )  # fmt: skip


def _cosines(rows: Array) -> Array:
    """[N, N], with nobody near itself; rows that are not finite are near nobody."""
    whole = np.isfinite(rows).all(axis=1, keepdims=True)
    finite = np.where(whole, rows, 0.0)
    norms = np.linalg.norm(finite, axis=1, keepdims=True)
    unit = finite / np.where(norms == 0, 1.0, norms)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    return cosines


def _counted(answers: Sequence[Array], judged: Sequence[int]) -> npt.NDArray[np.bool_]:
    """[N]: the rows of the judged answers, in the order of `_rows`."""
    chosen = frozenset(judged)
    lengths = [len(answer) if answer.ndim > 1 else 0 for answer in answers]
    return np.repeat([at in chosen for at in range(len(answers))], lengths)


def _rows(answers: Sequence[Array]) -> Array:
    parts = [answer.reshape(len(answer), -1) for answer in answers if answer.ndim > 1]
    return np.concatenate(parts) if parts else np.empty((0, 0))
