"""The ONNX that an engine is compiled from: the encoder's own, or one with a precision baked in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version

import onnx

from flows.interruption import told_to_end
from flows.release.run import Release
from flows.release.values import Baked, Exported
from services.children.scratch import scratch
from services.engines.precision import carried_precision
from services.engines.precision.bake import bake_encoder, needs_baking
from validators.contracts.digest import Digest
from validators.contracts.engine import Precision
from validators.contracts.pipeline import EncoderEntry
from validators.contracts.ports import Tensors


def model_for(
    release: Release,
    entry: EncoderEntry,
    exported: Exported,
    backend: str,
    precision: Precision,
    *,
    dataset: Digest,
    calibration: Callable[[], Sequence[Tensors]],
) -> Digest:
    """The model to compile for a precision; baked once for all backends that need it so.

    `calibration` is asked only where something is baked, and its data come from `dataset`.

    Raises:
        BadInput: too little calibration data.  Unsupported: nothing holds in that precision.
    """
    if not needs_baking(backend, precision):
        return exported.onnx
    store = release.workspace.store
    made = release.journal.perform(
        f"bake-{entry.name}-{precision.value}",
        {
            "exported": exported,
            "precision": precision,
            "profiles": entry.profiles,
            "tolerance": release.pipeline.gates.tolerance(precision),
            "dataset": dataset,
            "versions": [version("onnx"), version("onnxruntime")],
        },
        Baked,
        lambda: _bake(release, entry, exported, precision, calibration),
        needs=lambda value: [(store, value.onnx)],
    )
    return made.onnx


def _bake(
    release: Release,
    entry: EncoderEntry,
    exported: Exported,
    precision: Precision,
    calibration: Callable[[], Sequence[Tensors]],
) -> Baked:
    workspace = release.workspace
    with scratch(workspace.home.folder("engines", "work")) as folder:
        path = folder / "source.onnx"
        workspace.store.fetch(exported.onnx, path)
        if carried_precision(onnx.load_model(path)) is precision:
            return Baked(exported.onnx)  # the user's own file is in this precision already
        made = bake_encoder(
            path, exported.contract, precision, calibration(), folder,
            profiles=entry.profiles, tolerance=release.pipeline.gates.tolerance(precision),
            cancel=told_to_end,
        )  # fmt: skip
        return Baked(workspace.store.put_file(made))
