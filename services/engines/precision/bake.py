"""Bakes a precision into a checked ONNX, in a child process: the same file for all backends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import onnx

from services.children.phases import Progress
from services.children.process import Cancel, Limits, run_child
from services.children.scratch import scratch
from services.engines.precision.carried import carried_precision
from services.engines.requests import BAKE, BakeRequest
from services.engines.tensors import digest_feeds, save_cases
from validators.contracts.digest import digest_bytes, digest_value, short
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import Precision, ShapeProfile, Tolerance
from validators.contracts.ports import Tensors

RECIPE = 4
"""Raised with every change of what a recipe makes of the same inputs."""

NOTES_KEY = "modalgate.baked"

_BY_HINT = {"openvino": frozenset({Precision.FP16, Precision.BF16})}
"""Backends that take a precision from a hint, with the fp32 model."""


def needs_baking(backend_name: str, precision: Precision) -> bool:
    """Whether the backend computes in this precision only where the ONNX carries it."""
    return precision not in _BY_HINT.get(backend_name, frozenset()) | {Precision.FP32}


def bake_encoder(
    onnx_path: Path,
    contract: EncoderContract,
    precision: Precision,
    calibration: Sequence[Tensors],
    workdir: Path,
    *,
    profiles: Sequence[ShapeProfile],
    tolerance: Tolerance | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Path:
    """The ONNX carrying the precision, `workdir/<name>-<precision>-<digest of what made it>.onnx`.

    `onnx_path` is a file of `export_encoder`; `calibration` are real inputs, preprocessed as they
    are served, a batch of one each or more. A file that carries the precision already is returned
    as it is. One that was made before of the same inputs, by the same recipe and versions, is used
    again: its bytes would be the same.
    `tolerance` is the precision's own unless given.

    Raises:
        BadInput: the calibration data cannot be this encoder's, or are too few.
        Unsupported: nothing in the model can be computed in that precision, or nothing within
            parity.  Or an error of `services.children.errors` where the child was stopped.
    """
    data = onnx_path.read_bytes()
    if carried_precision(onnx.load_model_from_string(data)) is precision:
        return onnx_path
    made_of = {
        "recipe": RECIPE,
        "versions": [version("onnx"), version("onnxruntime")],
        "onnx": digest_bytes(data),
        "contract": contract,
        "precision": precision,
        "profiles": profiles,
        "tolerance": tolerance,
        "calibration": digest_feeds(calibration),
    }
    digest = short(digest_value("baked-onnx", made_of))
    target = workdir / f"{contract.name}-{precision.value}-{digest}.onnx"
    if target.is_file():
        return target
    with scratch(workdir) as folder:
        cases, out = folder / "calibration.npz", folder / "baked.onnx"
        save_cases(cases, calibration)
        request = BakeRequest(
            contract, precision, tuple(profiles), tolerance,
            str(onnx_path.resolve()), str(cases), str(out),
        )  # fmt: skip
        run_child(
            BAKE, request, folder,
            subject=f"{contract.name} in {precision.value}",
            limits=limits, progress=progress, cancel=cancel,
        )  # fmt: skip
        return out.replace(target)


def read_notes(path: Path) -> tuple[str, ...]:
    """What a baked file says of itself: its precision first, then how it came to be."""
    for item in onnx.load_model_from_string(path.read_bytes()).metadata_props:
        if item.key == NOTES_KEY:
            return tuple(json.loads(item.value))
    return ()
