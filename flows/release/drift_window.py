"""The drift window of a release: what its data looked like, as later windows are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from flows.progress import reporter
from flows.release.encoding import Encoder, loaded
from flows.release.fitting import TARGET_MODALITY, Fitted
from flows.release.run import Release
from flows.release.values import Exported
from validators.contracts.bundle import BundledEngine
from validators.contracts.dataset import Dataset
from validators.contracts.digest import Digest
from validators.contracts.documents import load
from validators.contracts.encoder import encoder_fingerprint
from validators.contracts.errors import NotFound
from validators.contracts.origin import VectorOrigin
from validators.contracts.pipeline import Branch
from validators.drift.columns import Embedded, Matrix, Rows, space_of
from validators.drift.dataset_window import window_of
from validators.drift.window import DriftWindow

MAX_MEASURED = 1000
"""Samples of an earlier data set that are encoded again."""


def origins_of(
    fitted: Sequence[Fitted],
    exported: Mapping[str, Exported],
    engines: Mapping[str, BundledEngine],
) -> dict[str, VectorOrigin]:
    """Who made the vectors of each modality."""
    found = {}
    for item in fitted:
        made, engine = exported[item.branch.encoder], engines[item.branch.encoder]
        fingerprint = encoder_fingerprint(made.contract, made.onnx)
        found[item.branch.modality] = VectorOrigin(fingerprint, engine.engine)
    return found


def make_window(
    clean: Dataset,
    fitted: Sequence[Fitted],
    exported: Mapping[str, Exported],
    origins: Mapping[str, VectorOrigin],
) -> DriftWindow:
    """Measures, tags and embeddings of a data set; vectors as the encoders made them."""
    rows = {sample.id: row for row, sample in enumerate(clean.samples)}
    embeddings = {
        item.branch.modality: Embedded(
            np.asarray(item.raw, np.float32).reshape(len(item.raw), -1),
            np.array([rows[sample.id] for sample in item.samples], np.intp),
            space_of(exported[item.branch.encoder].contract, item.adapter.entry.output),
            origins[item.branch.modality],
        )
        for item in fitted
    }
    return window_of(clean, embeddings)


def measure_again(
    release: Release,
    dataset: Digest,
    branches: Sequence[Branch],
    exported: Mapping[str, Exported],
    engines: Mapping[str, BundledEngine],
) -> DriftWindow | None:
    """The window of an earlier data set by these encoders, or None where its media are gone.

    At most MAX_MEASURED samples, spread evenly; what the encoders need not see is what it was.
    """
    store = release.workspace.store
    try:
        earlier = load(Dataset, store.get(dataset), where=dataset)
    except NotFound:
        return None
    chosen = _spread(earlier)
    adapters = {branch.modality: branch for branch in branches if branch.adapter is not None}
    wanted = {branch.encoder: engines[branch.encoder] for branch in adapters.values()}
    contracts = {name: exported[name].contract for name in wanted}
    embeddings: dict[str, Embedded] = {}
    with loaded(wanted, contracts, release.workspace, isolated=True) as encoders:
        for modality, branch in adapters.items():
            found = _embed(release, chosen, branch, encoders[branch.encoder])
            if found is None:
                return None
            rows, vectors = found
            made, output = exported[branch.encoder], branch.adapter.output if branch.adapter else ""
            fingerprint = encoder_fingerprint(made.contract, made.onnx)
            embeddings[modality] = Embedded(
                vectors,
                rows,
                space_of(made.contract, output),
                VectorOrigin(fingerprint, engines[branch.encoder].engine),
            )
    return window_of(chosen, embeddings)


def _embed(
    release: Release, dataset: Dataset, branch: Branch, encoder: Encoder
) -> tuple[Rows, Matrix] | None:
    """Rows and vectors of the samples that `fit` would take, or None where a medium is gone."""
    store, raws, rows = release.workspace.store, list[bytes | str](), list[int]()
    for row, sample in enumerate(dataset.samples):
        media = sample.find(branch.modality)
        if media is None or sample.find(TARGET_MODALITY) is None:
            continue
        if not store.contains(media.digest):
            return None
        raw = store.get(media.digest)
        raws.append(raw.decode() if branch.modality == TARGET_MODALITY else raw)
        rows.append(row)
    if branch.adapter is None or not raws:
        return None
    output = branch.adapter.output
    values = encoder.over(raws, [output], partial(_advanced, branch.modality))[output]
    return np.array(rows, np.intp), np.asarray(values, np.float32).reshape(len(rows), -1)


def _advanced(modality: str, done: int, total: int) -> None:
    reporter().advanced("drift", done, total, modality)


def _spread(dataset: Dataset) -> Dataset:
    count = len(dataset.samples)
    if count <= MAX_MEASURED:
        return dataset
    rows = np.linspace(0, count - 1, MAX_MEASURED).astype(int)
    return Dataset(tuple(dataset.samples[row] for row in rows))
