"""What is fitted on the data: adapters into the common space, the catalogue, the drift window."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from prefect import task
from safetensors.numpy import save

from flows.progress import reporter
from flows.release.encoding import Encoder, loaded
from flows.release.run import STEP, Release
from flows.release.sources import factory_digest, load_factory
from flows.release.values import Exported, Learned
from services.fusion.adapters import load_adapter, to_unit
from services.fusion.training import Pairs, TrainedAdapter, train_adapter
from validators.compatibility.estimates import wilson_bounds
from validators.contracts.bundle import BundledAsset, BundledEngine
from validators.contracts.dataset import Dataset, Sample
from validators.contracts.digest import canonical_json, digest_value
from validators.contracts.encoder import encoder_fingerprint
from validators.contracts.errors import BadInput
from validators.contracts.origin import VectorOrigin
from validators.contracts.pipeline import Branch, Pipeline
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude
from validators.drift.window import DriftWindow, descriptors_of, write_window
from validators.rehearsal.verdict import PairScores

GATE = "recall"
TARGET_MODALITY = "text"
"""What adapters are fitted towards: captions are the labels of every pair."""

SHUFFLE_SEED = 0
HELD_OUT_SHARE = 0.3

MAX_NAMED = 8
"""Samples with broken answers that are named one by one; the rest is counted."""

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Fitted:
    branch: Branch
    adapter: TrainedAdapter
    vectors: Array  # every paired sample in the common space, [N, D], unit norm
    targets: Array  # their captions in the common space, likewise
    samples: tuple[Sample, ...]
    unseen: npt.NDArray[np.bool_]  # [N]: what the adapter was not fitted on


@task(name="learn", **STEP)
def learn(
    release: Release,
    clean: Dataset,
    exported: Mapping[str, Exported],
    engines: Mapping[str, BundledEngine],
) -> Learned:
    """Fit each branch's adapter on de-identified pairs, and measure it beside chance.

    Raises:
        Blocked: an encoder answered NaN or infinity to any of them.
        ChildCrashed, ChildTimedOut, ChildTooLarge: an engine's process did not survive them.
    """
    reporter().started("learn")
    store = release.workspace.store
    found = release.journal.perform(
        "learn",
        {
            "dataset": clean.digest,
            "branches": release.pipeline.branches,
            "engines": {name: engine.engine for name, engine in engines.items()},
            "encoders": dict(exported),
            "over_chance": release.pipeline.gates.recall_over_chance,
            "classes": [factory_digest(location) for location in _class_lists(release.pipeline)],
        },
        Learned,
        lambda: _learn(release, clean, exported, engines),
        needs=lambda value: (
            [(store, asset.digest) for asset in value.assets] + [(store, value.window)]
        ),
    )
    release.gate(found.verdict)
    return found


def _learn(
    release: Release,
    clean: Dataset,
    exported: Mapping[str, Exported],
    engines: Mapping[str, BundledEngine],
) -> Learned:
    workspace, pipeline = release.workspace, release.pipeline
    contracts = {name: item.contract for name, item in exported.items()}
    branches = [branch for branch in pipeline.branches if branch.adapter is not None]
    wanted = {name: engines[name] for name in {branch.encoder for branch in branches}}
    with loaded(wanted, contracts, workspace, isolated=True) as encoders:
        embed = _Embedder(release, encoders)
        fitted = [embed.fit(branch, clean) for branch in branches]
    window = DriftWindow(
        descriptors_of(clean),
        {item.branch.modality: np.asarray(item.vectors, np.float32) for item in fitted},
    )
    assets = [
        _asset(release, f"adapter-{item.branch.modality}.safetensors", item.adapter.data)
        for item in fitted
        if item.adapter.data is not None
    ]
    assets += _catalogue(release, fitted, exported, engines)
    return Learned(
        assets=tuple(assets),
        branches=_resolved(pipeline, fitted),
        window=workspace.store.put(write_window(window)),
        scores=_alignment(fitted),
        verdict=_judge(pipeline, fitted),
    )


@dataclass(frozen=True, slots=True)
class _Embedder:
    """Runs samples through encoders and fits the maps between their spaces."""

    release: Release
    encoders: Mapping[str, Encoder]

    def fit(self, branch: Branch, clean: Dataset) -> _Fitted:
        assert branch.adapter is not None  # noqa: S101 chosen so by the caller
        pairs = tuple(s for s in clean.samples if s.find(branch.modality) and _caption_of(s))
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
        return _Fitted(
            branch, adapter, apply(values[adapter.entry.output]), to_unit(targets), pairs,
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


def held_out_of(pairs: Sequence[Sample]) -> npt.NDArray[np.bool_]:
    """[N]: what no fit may see: by the tag `split`, or where no sample has one, by content."""
    if any("split" in sample.tag_map() for sample in pairs):
        return np.array([sample.tag_map().get("split") == "held-out" for sample in pairs])
    shares = [int(digest_value("split", sample.media)[7:15], 16) / 2**32 for sample in pairs]
    return np.array([share < HELD_OUT_SHARE for share in shares])


def _alignment(fitted: Sequence[_Fitted]) -> PairScores:
    """Cosines of unseen pairs, and of each item with another one's caption.

    The other one is drawn: neighbours in id order are often of one kind.
    """
    matched, shuffled = list[float](), list[float]()
    for item in fitted:
        if item.branch.modality == TARGET_MODALITY or item.unseen.sum() < 2:
            continue
        vectors, targets = item.vectors[item.unseen], item.targets[item.unseen]
        order = np.random.default_rng(SHUFFLE_SEED).permutation(len(vectors))
        others = np.empty_like(order)
        others[order] = np.roll(order, 1)  # a single cycle: nobody is paired with itself
        matched += [float(value) for value in (vectors * targets).sum(axis=1)]
        shuffled += [float(value) for value in (vectors * targets[others]).sum(axis=1)]
    return PairScores(tuple(matched), tuple(shuffled))


def _caption_of(sample: Sample) -> bool:
    return sample.find(TARGET_MODALITY) is not None


def _resolved(pipeline: Pipeline, fitted: Sequence[_Fitted]) -> tuple[Branch, ...]:
    """The branches with the adapters that were really made: `auto` becomes what it chose."""
    entries = {item.branch.modality: item.adapter.entry for item in fitted}
    return tuple(
        dataclasses.replace(branch, adapter=entries.get(branch.modality, branch.adapter))
        for branch in pipeline.branches
    )


def _catalogue(
    release: Release,
    fitted: Sequence[_Fitted],
    exported: Mapping[str, Exported],
    engines: Mapping[str, BundledEngine],
) -> list[BundledAsset]:
    """What retrieval chooses from: the items of the branches other than the text itself.

    Their origins go with them, and those of the texts that their space was learned from.
    """
    if release.pipeline.answer.kind != "retrieval":
        return []
    items = [item for item in fitted if item.branch.modality != TARGET_MODALITY] or list(fitted)
    vectors = np.concatenate([item.vectors for item in items]).astype(np.float32)
    store = release.workspace.store
    entries = [
        {"id": sample.id, "caption": store.get(media.digest).decode()}
        for item in items
        for sample in item.samples
        if (media := sample.find(TARGET_MODALITY)) is not None
    ]
    origins = {}
    for item in fitted:
        made, engine = exported[item.branch.encoder], engines[item.branch.encoder]
        fingerprint = encoder_fingerprint(made.contract, made.onnx)
        origins[item.branch.modality] = VectorOrigin(fingerprint, engine.engine)
    return [
        _asset(release, "catalogue.safetensors", save({"vectors": vectors})),
        _asset(release, "catalogue.json", canonical_json(entries)),
        _asset(release, "catalogue-origins.json", canonical_json(origins)),
    ]


def _judge(pipeline: Pipeline, fitted: Sequence[_Fitted]) -> Verdict:
    """FAIL where a map does not beat chance by the pipeline's factor."""
    limit = pipeline.gates.recall_over_chance
    findings, metrics = [], dict[str, float]()
    measured = [item for item in fitted if item.branch.modality != TARGET_MODALITY]
    for item in measured:
        name = item.branch.modality
        metrics |= {f"{name}.{key}": value for key, value in item.adapter.metrics.items()}
        if item.adapter.recall.over_chance < limit:
            findings.append(
                Finding(
                    GATE, "near-chance", name, Outcome.FAIL,
                    round(item.adapter.recall.over_chance, 2), limit,
                    "Bring more pairs, another encoder, or another adapter.",
                )
            )  # fmt: skip
    examined = sum(item.adapter.recall.queries for item in measured or fitted)
    return conclude(GATE, findings, examined=examined, metrics=metrics)


def _asset(release: Release, name: str, data: bytes) -> BundledAsset:
    return BundledAsset(name, release.workspace.store.put(data), len(data))


def _class_lists(pipeline: Pipeline) -> list[str]:
    return [
        location
        for branch in pipeline.branches
        if branch.adapter is not None
        and isinstance(location := dict(branch.adapter.options).get("classes"), str)
    ]


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
