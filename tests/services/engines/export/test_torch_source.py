from __future__ import annotations

import dataclasses
from pathlib import Path

import onnx
import pytest

from services.children.errors import ChildCrashed
from services.engines.export.encoder import export_encoder
from tests.services.engines.models import (
    TEXT_ENTRY,
    image_entry,
    profile,
    write_factories,
)
from validators.contracts.digest import digest_bytes
from validators.contracts.errors import BadInput


def test_the_export_has_the_contracts_names_and_dynamic_dims(text_onnx: Path) -> None:
    graph = onnx.load(text_onnx).graph
    assert [item.name for item in graph.input] == ["ids", "mask"]
    assert [item.name for item in graph.output] == ["embedding"]
    dims = graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param for dim in dims] == ["batch", "tokens"]


def test_an_output_named_like_an_inner_value_leaves_a_sound_graph(text_onnx: Path) -> None:
    # the model's table lookup is itself called "embedding" by the exporter
    onnx.checker.check_model(str(text_onnx), full_check=True)
    assigned = [name for node in onnx.load(text_onnx).graph.node for name in node.output]
    assert len(assigned) == len(set(assigned))
    assert assigned.count("embedding") == 1


@pytest.mark.slow
def test_two_processes_and_two_folders_give_the_same_bytes(
    image_onnx: Path, tmp_path: Path
) -> None:
    write_factories(tmp_path)
    again = export_encoder(image_entry(), tmp_path, tmp_path / "work")
    assert digest_bytes(again.read_bytes()) == digest_bytes(image_onnx.read_bytes())
    assert str(tmp_path).encode() not in again.read_bytes()


@pytest.mark.slow
def test_a_dimension_that_no_profile_varies_is_exported_fixed(
    factories: Path, tmp_path: Path
) -> None:
    one = (profile(("pixels", (1, 3, 16, 16), (1, 3, 16, 16), (1, 3, 16, 16))),)
    entry = dataclasses.replace(image_entry(), profiles=one)
    made = export_encoder(entry, factories, tmp_path)
    dims = onnx.load(made).graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [1, 3, 16, 16]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factory", "where"),
    [
        ("nan_weights", "weight"),
        ("overflowing", "weight"),
        ("not_a_module", "tiny_models:not_a_module"),
        ("absent", "tiny_models:absent"),
        ("loses_a_tensor", "logits"),
        ("flattened", "features"),
    ],
)
def test_a_source_that_is_not_what_it_says_is_refused(
    factories: Path, tmp_path: Path, factory: str, where: str
) -> None:
    with pytest.raises(BadInput) as caught:
        export_encoder(image_entry(factory), factories, tmp_path)
    assert where in caught.value.where
    assert caught.value.remedy
    assert not list(tmp_path.glob("*.onnx"))


@pytest.mark.slow
def test_a_factory_with_a_bug_ends_with_its_own_error(factories: Path, tmp_path: Path) -> None:
    with pytest.raises(ChildCrashed, match="a factory with a bug"):
        export_encoder(image_entry("raises"), factories, tmp_path)


def test_a_module_that_does_not_exist_is_refused(factories: Path, tmp_path: Path) -> None:
    source = dataclasses.replace(TEXT_ENTRY.source, location="no_such_module:make")
    entry = dataclasses.replace(TEXT_ENTRY, source=source)
    with pytest.raises(BadInput, match="cannot be found"):
        export_encoder(entry, factories, tmp_path)
