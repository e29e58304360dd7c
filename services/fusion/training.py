"""Fitting an adapter on the release's own data, and measuring what it is worth.

Where there are enough pairs, a ridge map is learned on the training split and measured on the held
out one; where there are not, class names serve. Vectors come in: no engine is run here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.fusion.adapters import fit_conse, fit_ridge, load_adapter
from services.fusion.recall import Recall, recall_at_k
from validators.contracts.errors import BadInput, Unsupported
from validators.contracts.pipeline import AdapterEntry

Array = npt.NDArray[Any]

MINIMUM_PAIRS = 100
"""Training pairs below which a linear map of an image encoder's width learns too little."""

DEFAULT_K = 10


@dataclass(frozen=True, slots=True)
class Pairs:
    """Paired media, row by row.

    `outputs` are the encoder's outputs by tensor name, each [N, ...]; `targets` [N, D] the vectors
    of the captions in the common space; `captions` tell which items say the same; `held_out` [N] is
    True for what no fit may see.
    """

    outputs: Mapping[str, Array]
    targets: Array
    captions: Sequence[str]
    held_out: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TrainedAdapter:
    """An adapter's file (None for identity), its resolved entry, and its recall."""

    entry: AdapterEntry
    data: bytes | None
    recall: Recall

    @property
    def kind(self) -> str:
        return self.entry.kind

    @property
    def metrics(self) -> dict[str, float]:
        """For evidence. `recall`, its 95 % bounds and `chance` are all at `recall_k`."""
        return {
            "recall": self.recall.share,
            "recall_low": self.recall.low,
            "recall_high": self.recall.high,
            "chance": self.recall.chance,
            "over_chance": self.recall.over_chance,
            "recall_k": float(self.recall.k),
            "queries": float(self.recall.queries),
            "catalogue": float(self.recall.catalogue),
        }


def train_adapter(
    entry: AdapterEntry, pairs: Pairs, class_vectors: Callable[[], Array] | None = None
) -> TrainedAdapter:
    """Fit what the entry asks for and measure it.

    Kind `auto` becomes `ridge` where MINIMUM_PAIRS may be trained on, else `conse`; its option
    `scores` names the output with the class scores. `class_vectors` gives the vectors of the class
    names [classes, D], asked for only where they are needed.

    Raises:
        BadInput: pairs that do not fit each other, or conse without scores or class vectors.
        Unsupported: an unknown kind.
    """
    _require(pairs)
    resolved = resolve(entry, int((~pairs.held_out).sum()))
    if resolved.output not in pairs.outputs:
        raise BadInput(f"the pairs have no output {resolved.output!r}", where="adapter.output")
    values = pairs.outputs[resolved.output]
    data: bytes | None = None
    measured = np.ones(len(values), dtype=bool)  # what was not fitted may be measured everywhere
    if resolved.kind == "ridge":
        fitted = ~pairs.held_out
        data, measured = fit_ridge(values[fitted], pairs.targets[fitted]), pairs.held_out
    elif resolved.kind == "conse":
        if class_vectors is None:
            raise BadInput("a conse adapter needs class vectors", where="adapter.options.classes")
        data = fit_conse(class_vectors())
    vectors = load_adapter(resolved, data)(values[measured])
    captions = [c for c, use in zip(pairs.captions, measured, strict=True) if use]
    recall = measure_recall(pairs.targets[measured], vectors, captions)
    return TrainedAdapter(resolved, data, recall)


def resolve(entry: AdapterEntry, training_pairs: int) -> AdapterEntry:
    """The entry with `auto` replaced by the kind that this many training pairs allow.

    Raises:
        Unsupported: an unknown kind.  BadInput: too few pairs, and no scores to fall back on.
    """
    if entry.kind in ("ridge", "conse", "identity"):
        return entry
    if entry.kind != "auto":
        raise Unsupported(f"there is no adapter of kind {entry.kind!r}", where="adapter.kind")
    if training_pairs >= MINIMUM_PAIRS:
        return dataclasses.replace(entry, kind="ridge")
    scores = dict(entry.options).get("scores")
    if not isinstance(scores, str):
        raise BadInput(
            f"{training_pairs} pairs are too few to learn a map, and no class scores are named",
            where="adapter.options.scores",
            remedy=f"Bring {MINIMUM_PAIRS} training pairs, or name the output with class scores.",
        )
    return dataclasses.replace(entry, kind="conse", output=scores)


def measure_recall(texts: Array, items: Array, captions: Sequence[str]) -> Recall:
    """Recall of captions [N, D] that look for their items [N, D]; equal captions match alike.

    k is DEFAULT_K, and an eighth of a catalogue too small for that to mean anything.
    """
    k = DEFAULT_K if len(items) >= 8 * DEFAULT_K else max(1, len(items) // 8)
    rows: dict[str, list[int]] = {}
    for index, caption in enumerate(captions):
        rows.setdefault(caption, []).append(index)
    return recall_at_k(texts, items, k, [rows[caption] for caption in captions])


def _require(pairs: Pairs) -> None:
    lengths = {len(values) for values in pairs.outputs.values()}
    lengths |= {len(pairs.targets), len(pairs.captions), len(pairs.held_out)}
    if len(lengths) != 1 or not lengths - {0}:
        raise BadInput(f"the pairs have lengths {sorted(lengths)}", where="pairs")
