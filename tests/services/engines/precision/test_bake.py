"""Baking end to end: child process, backends, parity. Small models with real-looking data."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from services.engines.backends.catalogue import backend
from services.engines.export.encoder import export_encoder
from services.engines.precision.bake import bake_encoder, needs_baking
from services.engines.precision.computed import read_computed, share_of
from services.engines.specs import specify
from services.engines.tensors import Arrays
from services.engines.workshop import EngineWorkshop
from tests.services.engines.conftest import Yard
from tests.services.engines.models import WIDE_ENTRY, image_entry
from tests.services.engines.precision.inputs import pictures, sentences
from validators.contracts.engine import Precision
from validators.contracts.errors import BadInput
from validators.contracts.pipeline import EncoderEntry
from validators.contracts.verdict import Outcome

Bake = Callable[[str, Precision], Path]
ENTRIES: dict[str, EncoderEntry] = {"image": image_entry(), "wide": WIDE_ENTRY}
SAMPLES: dict[str, list[Arrays]] = {"image": pictures(), "wide": sentences()}


@pytest.fixture(scope="module")
def baked(factories: Path, image_onnx: Path, tmp_path_factory: pytest.TempPathFactory) -> Bake:
    """Bakes into one folder: what was made before is used again."""
    folder = tmp_path_factory.mktemp("baked")
    sources = {"image": image_onnx}

    def source(name: str) -> Path:
        if name not in sources:
            sources[name] = export_encoder(ENTRIES[name], factories, folder)
        return sources[name]

    def bake(name: str, precision: Precision) -> Path:
        entry = ENTRIES[name]
        return bake_encoder(
            source(name), entry.contract, precision, SAMPLES[name], folder,
            profiles=entry.profiles,
        )  # fmt: skip

    return bake


CELLS = [
    ("image", "openvino", Precision.INT8),
    pytest.param(("image", "onnxruntime", Precision.INT8), marks=pytest.mark.heavy),
    pytest.param(("wide", "openvino", Precision.INT8), marks=pytest.mark.heavy),
    ("wide", "onnxruntime", Precision.INT8),
    ("wide", "openvino", Precision.INT4),
    ("wide", "onnxruntime", Precision.INT4),
]


def _verify(yard: Yard, factories: Path, path: Path, cell: tuple[str, str, Precision]) -> bytes:
    """Build and verify; the build log."""
    workshop: EngineWorkshop = yard.workshop
    entry, (_, name, precision) = ENTRIES[cell[0]], cell
    spec = specify(entry.contract, yard.store.put_file(path), name, precision, entry.profiles)
    built = workshop.obtain(spec, spec.onnx, entry.contract)
    verified = workshop.verify(built, entry.contract, entry.source, factories)
    assert verified.verdict.outcome is Outcome.PASS, verified.verdict.findings
    assert dict(verified.verdict.metrics)["max_rel"] > 1e-5  # it is another precision
    return yard.store.get(built.manifest.build_log)


@pytest.mark.parametrize("cell", CELLS)
def test_a_baked_engine_passes_parity_and_computes_what_it_says(
    shared_yard: Yard, factories: Path, baked: Bake, cell: tuple[str, str, Precision]
) -> None:
    name, where, precision = cell
    path = baked(name, precision if needs_baking(where, precision) else Precision.FP32)
    log = _verify(shared_yard, factories, path, cell)
    assert share_of(read_computed(log), precision) > 0.3


@pytest.mark.parametrize("name", ["openvino", "onnxruntime", "tensorrt", "tensorrt_rtx"])
def test_what_a_backend_takes_by_itself_is_not_baked(name: str) -> None:
    baked = {item for item in Precision if needs_baking(name, item)}
    assert baked == {Precision.INT8, Precision.INT4} | (
        set() if name == "openvino" else {Precision.FP16, Precision.BF16}
    )


def test_a_file_that_carries_the_precision_is_returned_as_it_is(
    image_onnx: Path, tmp_path: Path, baked: Bake
) -> None:
    entry = ENTRIES["image"]
    for path, precision in (
        (image_onnx, Precision.FP32),
        (baked("image", Precision.INT8), Precision.INT8),
    ):
        assert path == bake_encoder(
            path, entry.contract, precision, (), tmp_path, profiles=entry.profiles
        )


def test_two_processes_bake_the_same_bytes(image_onnx: Path, tmp_path: Path, baked: Bake) -> None:
    entry = ENTRIES["image"]
    other = bake_encoder(
        image_onnx, entry.contract, Precision.INT8, SAMPLES["image"], tmp_path,
        profiles=entry.profiles,
    )  # fmt: skip
    first = baked("image", Precision.INT8)
    assert other.name == first.name
    assert other.read_bytes() == first.read_bytes()


def test_errors_of_the_child_come_through(image_onnx: Path, tmp_path: Path) -> None:
    entry = ENTRIES["image"]
    with pytest.raises(BadInput, match="3 calibration samples, 16 are the least"):
        bake_encoder(
            image_onnx, entry.contract, Precision.INT8, pictures(3), tmp_path,
            profiles=entry.profiles,
        )  # fmt: skip
    assert not list(tmp_path.glob("*.onnx"))


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "precision"),
    [
        *itertools.product(("image", "wide"), (Precision.FP16, Precision.BF16, Precision.INT8)),
        ("wide", Precision.INT4),
    ],
)
def test_an_rtx_plan_is_made_of_what_was_baked(
    shared_yard: Yard, baked: Bake, name: str, precision: Precision
) -> None:
    found = backend("tensorrt_rtx").probe()
    if not found.available:
        pytest.skip(found.reason)
    entry = dataclasses.replace(ENTRIES[name], precision=precision)
    spec = specify(
        entry.contract, shared_yard.store.put_file(baked(name, precision)), "tensorrt_rtx",
        precision, entry.profiles, targets=("SM89",),
    )  # fmt: skip
    assert shared_yard.workshop.obtain(spec, spec.onnx, entry.contract).manifest.size_bytes > 0
