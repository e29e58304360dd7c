"""What is fitted on the data: adapters into the common space, the catalogue, the drift window."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from prefect import task
from safetensors.numpy import save

from flows.progress import reporter
from flows.release.drift_window import make_window, origins_of
from flows.release.encoding import loaded
from flows.release.fitting import GATE, TARGET_MODALITY, Embedder, Fitted
from flows.release.run import STEP, Release
from flows.release.sources import factory_digest
from flows.release.values import Exported, Learned
from validators.contracts.bundle import BundledAsset, BundledEngine
from validators.contracts.dataset import Dataset
from validators.contracts.digest import canonical_json
from validators.contracts.origin import VectorOrigin
from validators.contracts.pipeline import Branch, Pipeline
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude
from validators.drift.window_file import write_window
from validators.rehearsal.verdict import PairScores

SHUFFLE_SEED = 0
Array = npt.NDArray[Any]


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
        embed = Embedder(release, encoders)
        fitted = [embed.fit(branch, clean) for branch in branches]
    origins = origins_of(fitted, exported, engines)
    window = make_window(clean, fitted, exported, origins)
    assets = [
        _asset(release, f"adapter-{item.branch.modality}.safetensors", item.adapter.data)
        for item in fitted
        if item.adapter.data is not None
    ]
    assets += _catalogue(release, fitted, origins)
    return Learned(
        assets=tuple(assets),
        branches=_resolved(pipeline, fitted),
        window=workspace.store.put(write_window(window)),
        scores=_alignment(fitted),
        verdict=_judge(pipeline, fitted),
    )


def _alignment(fitted: Sequence[Fitted]) -> PairScores:
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


def _resolved(pipeline: Pipeline, fitted: Sequence[Fitted]) -> tuple[Branch, ...]:
    """The branches with the adapters that were really made: `auto` becomes what it chose."""
    entries = {item.branch.modality: item.adapter.entry for item in fitted}
    return tuple(
        dataclasses.replace(branch, adapter=entries.get(branch.modality, branch.adapter))
        for branch in pipeline.branches
    )


def _catalogue(
    release: Release, fitted: Sequence[Fitted], origins: Mapping[str, VectorOrigin]
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
    return [
        _asset(release, "catalogue.safetensors", save({"vectors": vectors})),
        _asset(release, "catalogue.json", canonical_json(entries)),
        _asset(release, "catalogue-origins.json", canonical_json(origins)),
    ]


def _judge(pipeline: Pipeline, fitted: Sequence[Fitted]) -> Verdict:
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
