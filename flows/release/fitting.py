"""Adapters fitted on de-identified pairs: samples through encoders, maps between their spaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flows.progress import reporter
from flows.release.encoding import Encoder
from flows.release.run import Release
from flows.release.sources import load_factory
from services.fusion.adapters import load_adapter, to_unit
from services.fusion.training import Pairs, TrainedAdapter, resolve, train_adapter
from validators.compatibility.estimates import wilson_bounds
from validators.contracts.dataset import RECORDING_TAG, SPLIT_TAG, Dataset, Sample
from validators.contracts.digest import digest_value
from validators.contracts.errors import BadInput
from validators.contracts.pipeline import Branch, Pipeline
from validators.contracts.verdict import Finding, Outcome, conclude

GATE = "recall"
TARGET_MODALITY = "text"
"""What adapters are fitted towards: captions are the labels of every pair."""

HELD_OUT_SHARE = 0.3

MAX_NAMED = 8
"""Samples with broken answers that are named one by one; the rest is counted."""

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A branch's map, and all its pairs in the common space."""

    branch: Branch
    adapter: TrainedAdapter
    raw: Array  # every paired sample as the encoder made it and the adapter reads it, [N, in]
    vectors: Array  # in the common space, [N, D], unit norm
    targets: Array  # their captions in the common space, likewise
    samples: tuple[Sample, ...]
    unseen: npt.NDArray[np.bool_]  # [N]: what the adapter was not fitted on


@dataclass(frozen=True, slots=True)
class Embedder:
    """Runs samples through encoders and fits the maps between their spaces."""

    release: Release
    encoders: Mapping[str, Encoder]

    def fit(self, branch: Branch, clean: Dataset) -> Fitted:
        """The branch's map over all samples that have its modality and a caption.

        Raises:
            BadInput: there is none.  Blocked: an answer that is not finite.
        """
        assert branch.adapter is not None  # noqa: S101 chosen so by the caller
        pairs = pairs_of(branch, clean)
        if not pairs:
            raise BadInput(
                f"no sample has both a caption and the modality {branch.modality}",
                where=f"branches.{branch.modality}",
                remedy="Add captioned samples, or leave the branch out.",
            )
        scores = dict(branch.adapter.options).get("scores")
        outputs = sorted({branch.adapter.output, *([scores] if isinstance(scores, str) else [])})
        raws = [self._raw(sample, branch.modality) for sample in pairs]
        values = self.encoders[branch.encoder].over(raws, outputs, self._advanced(branch.modality))
        self._require_finite(branch.encoder, pairs, values)
        captions = [self._text(sample) for sample in pairs]
        if branch.modality == TARGET_MODALITY:
            targets = values[branch.adapter.output]
        else:
            targets = self._text_vectors(captions)
            reader = self.release.pipeline.branch(TARGET_MODALITY).encoder
            self._require_finite(reader, pairs, {"text": targets})
        held_out = held_out_of(pairs)
        adapter = train_adapter(
            branch.adapter,
            Pairs(values, targets, captions, held_out),
            lambda: self._text_vectors(_class_names(branch)),
        )
        apply = load_adapter(adapter.entry, adapter.data)
        raw = values[adapter.entry.output]
        return Fitted(
            branch, adapter, raw, apply(raw), to_unit(targets), pairs,
            held_out if adapter.kind == "ridge" else np.ones(len(pairs), bool),
        )  # fmt: skip

    def _require_finite(
        self, encoder: str, samples: Sequence[Sample], values: Mapping[str, Array]
    ) -> None:
        """Every paired sample passes here, so this is where one broken answer in 500 is seen.

        Raises:
            Blocked: answers that are not finite.
        """
        broken = find_broken(encoder, [sample.id for sample in samples], values)
        if broken is not None:
            self.release.gate(conclude(GATE, [broken], examined=len(samples)))

    def _raw(self, sample: Sample, modality: str) -> bytes | str:
        return self._text(sample) if modality == TARGET_MODALITY else self._bytes(sample, modality)

    def _text(self, sample: Sample) -> str:
        return self._bytes(sample, TARGET_MODALITY).decode()

    def _bytes(self, sample: Sample, modality: str) -> bytes:
        media = sample.find(modality)
        assert media is not None  # noqa: S101 pairs have both
        return self.release.workspace.store.get(media.digest)

    def _text_vectors(self, texts: Sequence[str]) -> Array:
        branch = self.release.pipeline.branch(TARGET_MODALITY)
        assert branch.adapter is not None  # noqa: S101 the composition check requires it
        output = branch.adapter.output
        return self.encoders[branch.encoder].over(texts, [output], self._advanced("captions"))[
            output
        ]

    def _advanced(self, what: str) -> Callable[[int, int], None]:
        return lambda done, total: reporter().advanced("learn", done, total, what)


def find_broken(
    encoder: str, samples: Sequence[str], values: Mapping[str, Array]
) -> Finding | None:
    """FAIL, which nothing waives, where any output of a sample holds NaN or infinity."""
    broken = np.zeros(len(samples), bool)
    for rows in values.values():
        broken |= ~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)
    if not broken.any():
        return None
    names = [name for name, hit in zip(samples, broken, strict=True) if hit]
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    low, high = wilson_bounds(len(names) / len(samples), len(samples))
    return Finding(
        GATE, "not-finite", encoder, Outcome.FAIL,
        f"{len(names)} of {len(samples)} samples ({low:.2%} to {high:.2%}) with NaN or infinity: "
        f"{', '.join(names[:MAX_NAMED])}{more}",
        "finite answers to all samples",
        "Run these samples through the encoder layer by layer, and mend it or its precision.",
        waivable=False,
    )  # fmt: skip


def require_held_out(pipeline: Pipeline, clean: Dataset) -> None:
    """Refuse data of which no part would be left to measure a learned map on.

    Raises:
        BadInput: all of a branch's pairs would be fitted, or all held out.
    """
    for branch in pipeline.branches:
        if branch.adapter is None or branch.modality == TARGET_MODALITY:
            continue
        pairs = pairs_of(branch, clean)
        held_out = held_out_of(pairs)
        fitted = int((~held_out).sum())
        if not pairs or resolve(branch.adapter, fitted).kind != "ridge" or 0 < fitted < len(pairs):
            continue
        raise BadInput(
            f"of {len(pairs)} samples with a text and the modality {branch.modality}, "
            f"{'none is' if fitted else 'all are'} held out: a map cannot be learned and measured",
            where=f"branches.{branch.modality}",
            remedy="Bring more recordings or samples (those of one recording stay together), or "
            "tag some of them with split: held-out and the others with split: train.",
        )


def held_out_of(pairs: Sequence[Sample]) -> npt.NDArray[np.bool_]:
    """[N]: what no fit may see: by the tag `split`, or where no sample has one, by content.

    Samples of one recording fall on one side: what is next to each other looks alike.
    """
    tags = [sample.tag_map() for sample in pairs]
    if any(SPLIT_TAG in found for found in tags):
        return np.array([found.get(SPLIT_TAG) == "held-out" for found in tags])
    parts = [
        found.get(RECORDING_TAG) or sample.media for found, sample in zip(tags, pairs, strict=True)
    ]
    shares = [int(digest_value("split", part)[7:15], 16) / 2**32 for part in parts]
    return np.array([share < HELD_OUT_SHARE for share in shares], bool)


def pairs_of(branch: Branch, clean: Dataset) -> tuple[Sample, ...]:
    """The samples that have the branch's modality and a caption."""
    return tuple(
        sample
        for sample in clean.samples
        if sample.find(branch.modality) and sample.find(TARGET_MODALITY)
    )


def _class_names(branch: Branch) -> Sequence[str]:
    location = dict(branch.adapter.options).get("classes") if branch.adapter else None
    if not isinstance(location, str):
        raise BadInput(
            "too few pairs to learn a map, and no class names to do without one",
            where=f"branches.{branch.modality}.adapter.options.classes",
            remedy="Name a function that returns the class names, as package.module:function.",
        )
    names = load_factory(location)()
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise BadInput("class names are a tuple of texts", where=location)
    return names
