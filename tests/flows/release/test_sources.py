"""What a source's digest depends on, and which sources are refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from flows.release.sources import (
    data_digest,
    encoder_digest,
    factory_digest,
    folder_digest,
    load_factory,
    read_asset,
)
from tests.scenarios.small import Project, image_encoder
from tests.services.engines.models import image_entry
from validators.contracts.errors import BadInput, NotFound
from validators.contracts.pipeline import DataSource, EncoderSource, SourceKind

FACTORY = "made_here_{}"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Writes a module's text; gives the location of its function `make`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    count = iter(range(100))

    def write(text: str) -> str:
        name = FACTORY.format(next(count))
        (tmp_path / f"{name}.py").write_text(text)
        return f"{name}:make"

    return write


def test_a_folder_is_all_its_files_by_name_and_content(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("1")
    seen = [folder_digest(tmp_path)]
    (tmp_path / "in" / "a").write_text("2")
    seen.append(folder_digest(tmp_path))
    (tmp_path / "in" / "a").rename(tmp_path / "in" / "b")
    seen.append(folder_digest(tmp_path))
    assert len(set(seen)) == 3
    assert folder_digest(tmp_path) == seen[-1]


def test_a_data_folder_is_looked_for_beside_the_pipeline_file(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    source = DataSource("folder", "data")
    assert data_digest(source, project.folder) != folder_digest(project.folder / "data")
    with pytest.raises(NotFound, match="does not exist"):
        data_digest(source, tmp_path)


def test_data_beside_an_onnx_file_is_part_of_the_encoder(tmp_path: Path) -> None:
    entry = image_entry(onnx="model.onnx")
    digests = set()
    for seed in (1, 2):
        (tmp_path / "model.bin").unlink(missing_ok=True)
        onnx.save_model(
            image_encoder(seed), tmp_path / "model.onnx", save_as_external_data=True,
            location="model.bin", size_threshold=0,
        )  # fmt: skip
        assert b"location" in (tmp_path / "model.onnx").read_bytes()
        digests.add(encoder_digest(entry, tmp_path))
    assert len(digests) == 2
    (tmp_path / "unrelated.bin").write_bytes(b"x")
    assert encoder_digest(entry, tmp_path) in digests


@pytest.mark.parametrize("content", [b"", b"not a model", None])
def test_a_file_that_is_no_model_has_a_digest_or_is_not_found(
    tmp_path: Path, content: bytes | None
) -> None:
    """What is wrong with it is said where it is exported."""
    entry = image_entry(onnx="model.onnx")
    if content is None:
        with pytest.raises(NotFound, match="cannot be read"):
            encoder_digest(entry, tmp_path)
        return
    (tmp_path / "model.onnx").write_bytes(content)
    assert encoder_digest(entry, tmp_path).startswith("sha256:")


def test_a_factory_is_its_text_and_what_its_version_function_says(
    module: Callable[[str], str],
) -> None:
    plain = factory_digest(module("def make(folder): ...\n"))
    other = factory_digest(module("def make(folder): ...  # changed\n"))
    versions = [
        factory_digest(module(f"def make(folder): ...\ndef make_version(): return {number}\n"))
        for number in (1, 2)
    ]
    assert len({plain, other, *versions}) == 4


def test_a_torch_factory_may_lie_beside_its_pipeline_file_and_two_may_have_one_name(
    tmp_path: Path,
) -> None:
    entry, digests = image_entry(factory="make"), set()
    for name in ("old", "new"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "tiny_layers.py").write_text(f"NAME = {name!r}\n")
        (folder / "tiny_beside.py").write_text("from tiny_layers import NAME\ndef make(): ...\n")
        source = EncoderSource(SourceKind.TORCH, "tiny_beside:make")
        digests.add(encoder_digest(replace(entry, source=source), folder))
        assert not {"tiny_beside", "tiny_layers"} & set(sys.modules)
        assert str(folder) not in sys.path
    assert len(digests) == 2


@pytest.mark.parametrize("location", ["no.such.module:make", "nonsense", ":make", "json:", "..:x"])
def test_a_module_that_does_not_exist_is_not_found(location: str) -> None:
    with pytest.raises(NotFound) as caught:
        factory_digest(location)
    assert caught.value.remedy


def test_a_name_that_is_no_function_is_not_found() -> None:
    with pytest.raises(NotFound, match="no callable"):
        load_factory("json:__name__")


def test_an_asset_lies_beside_the_pipeline_or_inside_a_package(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_bytes(b"one two")
    assert read_asset("words.txt", tmp_path) == b"one two"
    assert read_asset("onnx:__init__.py", tmp_path)
    for reference, error in {
        "absent.txt": NotFound,
        "onnx:absent.txt": NotFound,
        "onnx:../numpy/__init__.py": BadInput,
        "no_such_package:file": BadInput,
        "json.decoder:file": BadInput,
    }.items():
        with pytest.raises(error):
            read_asset(reference, tmp_path)
