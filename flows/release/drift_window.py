"""The drift window of a release: what its data looked like, as later windows are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flows.release.fitting import Fitted
from flows.release.values import Exported
from validators.contracts.bundle import BundledEngine
from validators.contracts.dataset import Dataset
from validators.contracts.encoder import encoder_fingerprint
from validators.contracts.origin import VectorOrigin
from validators.drift.columns import Embedded, space_of
from validators.drift.dataset_window import window_of
from validators.drift.window import DriftWindow


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
