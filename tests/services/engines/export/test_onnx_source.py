from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from services.engines.export.encoder import export_encoder
from services.engines.export.onnx_source import load_source, read_onnx
from tests.services.engines.models import IMAGE, image_entry
from tests.services.engines.onnx_models import image_model, save
from validators.contracts.digest import digest_bytes
from validators.contracts.errors import BadInput, NotFound


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"hello, this is not ONNX", "not an ONNX model"),
        (image_model().SerializeToString()[:-40], "cut short"),
        (onnx.ModelProto(ir_version=10).SerializeToString(), "no ONNX graph"),
    ],
    ids=["zero bytes", "text", "truncated", "no graph"],
)
def test_what_is_not_an_onnx_model_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(BadInput) as caught:
        read_onnx(path)
    assert said in caught.value.what
    assert caught.value.where == "model.onnx"
    assert caught.value.remedy


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_onnx(tmp_path / "absent.onnx")


def test_a_zero_byte_file_is_refused_through_the_child_process(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").touch()
    with pytest.raises(BadInput, match="empty"):
        export_encoder(image_entry(onnx="model.onnx"), tmp_path, tmp_path / "work")
    assert not list((tmp_path / "work").glob("*.onnx"))


def test_external_data_beside_the_model_becomes_part_of_it(tmp_path: Path) -> None:
    onnx.save_model(
        image_model(), tmp_path / "model.onnx", save_as_external_data=True,
        location="weights.bin", size_threshold=0,
    )  # fmt: skip
    whole = load_source(tmp_path / "model.onnx", IMAGE)
    weight = onnx.numpy_helper.to_array(whole.graph.initializer[0])
    np.testing.assert_array_equal(weight.reshape(-1), np.linspace(-1, 1, 24, dtype=np.float32))


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/hostname", "gone.bin"])
def test_external_data_from_elsewhere_is_refused(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(bytes(96))
    model = image_model()
    tensor = model.graph.initializer[0]
    onnx.external_data_helper.set_external_data(tensor, location)
    tensor.ClearField("raw_data")
    with pytest.raises(BadInput) as caught:
        load_source(save(model, folder / "model.onnx"), IMAGE)
    assert "weight" in caught.value.what


def test_outputs_that_the_contract_does_not_name_are_cut(tmp_path: Path) -> None:
    extra = helper.make_node("Relu", ["features"], ["rest"], name="rest")
    model = image_model(extra_nodes=[extra])
    model.graph.output.append(helper.make_tensor_value_info("rest", 1, ["batch", 8]))
    kept = load_source(save(model, tmp_path / "model.onnx"), IMAGE)
    assert [item.name for item in kept.graph.output] == ["features", "logits"]
    assert "rest" not in [node.name for node in kept.graph.node]


def test_an_output_that_the_model_lacks_is_named(tmp_path: Path) -> None:
    path = save(image_model(logits_name="scores"), tmp_path / "model.onnx")
    with pytest.raises(BadInput, match="'logits'") as caught:
        load_source(path, IMAGE)
    assert "scores" in caught.value.remedy


def test_an_onnx_source_gives_the_same_bytes_wherever_it_lies(tmp_path: Path) -> None:
    digests = set()
    for name in ("here", "there"):
        folder = tmp_path / name
        folder.mkdir()
        model = image_model()
        model.doc_string = f"exported in {folder}"
        save(model, folder / "model.onnx")
        made = export_encoder(image_entry(onnx="model.onnx"), folder, folder / "work")
        digests.add(digest_bytes(made.read_bytes()))
    assert len(digests) == 1
