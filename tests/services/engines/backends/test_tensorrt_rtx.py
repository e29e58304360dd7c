from __future__ import annotations

import dataclasses
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from services.engines.backends.catalogue import backend
from services.engines.specs import specify
from tests.services.engines.conftest import Yard
from tests.services.engines.models import IMAGE, IMAGE_PROFILES
from tests.services.engines.onnx_models import image_model
from validators.contracts.digest import Digest
from validators.contracts.engine import EngineSpec, Precision
from validators.contracts.errors import BadInput, Unavailable, Unsupported


@pytest.fixture(autouse=True)
def _available() -> None:
    found = backend("tensorrt_rtx").probe()
    if not found.available:
        pytest.skip(found.reason)


def _spec(onnx_digest: Digest, *targets: str) -> EngineSpec:
    return specify(
        IMAGE, onnx_digest, "tensorrt_rtx", Precision.FP32, IMAGE_PROFILES, targets=targets
    )


@pytest.mark.parametrize("target", ["SM80", "SM86", "SM89", "SM120"])
def test_a_plan_is_made_for_each_target_without_a_gpu(
    yard: Yard, image_onnx: Path, target: str
) -> None:
    spec = _spec(yard.store.put_file(image_onnx), target)
    built = yard.workshop.obtain(spec, spec.onnx, IMAGE)
    assert built.manifest.spec.target.features == (target,)
    assert yard.store.get(built.manifest.engine)[:4] == b"vtrt"  # the mark of an RTX plan


def test_a_node_that_the_parser_cannot_take_is_named(yard: Yard) -> None:
    node = helper.make_node("Det", ["square"], ["determinant"], name="odd_one")
    model = image_model(extra_nodes=[node])
    square = helper.make_tensor("square", TensorProto.FLOAT, [2, 2], [1.0, 2.0, 3.0, 4.0])
    model.graph.initializer.append(square)
    value = helper.make_tensor_value_info("determinant", TensorProto.FLOAT, [])
    model.graph.output.append(value)
    onnx.checker.check_model(model, full_check=True)
    spec = _spec(yard.store.put(model.SerializeToString()), "SM89")
    with pytest.raises(BadInput) as caught:
        yard.workshop.obtain(spec, spec.onnx, IMAGE)
    assert "Det (odd_one)" in caught.value.what
    assert not list(yard.store.references("engines/"))


@pytest.mark.parametrize("targets", [("SM90",), ("SM89", "SM90"), ()])
def test_an_architecture_it_does_not_compile_for_is_refused(targets: tuple[str, ...]) -> None:
    with pytest.raises(Unsupported):
        backend("tensorrt_rtx").choose_target(targets, backend("tensorrt_rtx").probe())


def test_the_host_is_no_target_without_a_gpu() -> None:
    found = backend("tensorrt_rtx").probe()
    if found.can_run:
        pytest.skip("there is a GPU")
    with pytest.raises(Unavailable, match="ahead of time"):
        backend("tensorrt_rtx").choose_target(("host",), found)


def test_the_order_of_targets_does_not_change_the_key() -> None:
    digest = Digest("sha256:" + "0" * 64)
    assert _spec(digest, "SM89", "SM86").key == _spec(digest, "SM86", "SM89").key


def test_turing_takes_half_precision_only() -> None:
    with pytest.raises(Unsupported, match="SM75"):
        _spec(Digest("sha256:" + "0" * 64), "SM75")
    spec = _spec(Digest("sha256:" + "0" * 64), "SM86")
    backend("tensorrt_rtx").check(dataclasses.replace(spec, precision=Precision.FP16))
