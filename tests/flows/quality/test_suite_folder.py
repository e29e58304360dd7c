"""Suites in a folder: what people edit is read as a stranger's word, and kept when asked to."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from flows.pipeline_reading import read_pipeline
from flows.quality.suite_folder import read_folder, write_folder
from tests.scenarios.small import Project
from validators.contracts.errors import BadInput, NotFound
from validators.contracts.pipeline import Pipeline
from validators.quality.contract import contract_suites
from validators.quality.suite_file import MAX_FILE_BYTES, SuiteFileError, write_suite


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    set_suites(made, "quality")
    return made


def set_suites(project: Project, folder: str) -> None:
    project.edit(lambda document: document["gates"].update(quality={"suites": folder}))


def read(project: Project) -> Pipeline:
    return read_pipeline(project.pipeline)


def write(project: Project, **options: Any) -> tuple[list[str], list[str]]:
    found = read(project)
    force = bool(options.get("force"))
    return write_folder(found, project.folder, contract_suites(found), force=force)


def problems(project: Project) -> list[str]:
    with pytest.raises(SuiteFileError) as caught:
        read_folder(read(project), project.folder)
    return [str(item) for item in caught.value.problems]


def test_what_init_writes_is_read_as_the_contract_s(project: Project) -> None:
    assert write(project) == (["samples", "image", "text"], [])
    assert read_folder(read(project), project.folder) == contract_suites(read(project))


def test_edits_are_kept_unless_forced(project: Project) -> None:
    write(project)
    path = project.folder / "quality" / "image.json"
    edited = json.loads(path.read_text())
    edited["expectations"] = edited["expectations"][:2]
    path.write_text(json.dumps(edited))
    assert write(project) == ([], ["samples", "image", "text"])
    assert len(read_folder(read(project), project.folder)["image"].expectations) == 2
    assert write(project, force=True)[0] == ["samples", "image", "text"]
    assert read_folder(read(project), project.folder) == contract_suites(read(project))


def test_a_pipeline_that_names_no_folder_has_none(project: Project) -> None:
    project.edit(lambda document: document["gates"].pop("quality"))
    assert read_folder(read(project), project.folder) == {}


def test_a_folder_that_is_not_there_says_how_to_write_it(project: Project) -> None:
    with pytest.raises(NotFound, match="quality init"):
        read_folder(read(project), project.folder)


@pytest.mark.parametrize("name", ["/etc", "../elsewhere", "a/../../b", "quality\u0000"])
def test_a_folder_elsewhere_is_refused(project: Project, name: str) -> None:
    set_suites(project, name)
    with pytest.raises(BadInput, match="leads out"):
        write(project)
    with pytest.raises(BadInput):
        read_folder(read(project), project.folder)


def test_a_folder_that_is_a_link_out_is_refused(project: Project, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (project.folder / "quality").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="leads out"):
        write(project)
    with pytest.raises(BadInput, match="leads out"):
        read_folder(read(project), project.folder)


def test_a_suite_that_is_a_link_out_of_the_folder_is_refused(project: Project) -> None:
    write(project)
    path = project.folder / "quality" / "image.json"
    path.rename(project.folder / "image.json")
    path.symlink_to(project.folder / "image.json")
    (problem,) = problems(project)
    assert problem.startswith("quality/image.json: the file: It is a link that leads out")


def test_force_replaces_a_link_and_not_what_it_leads_to(project: Project, tmp_path: Path) -> None:
    target = tmp_path / "precious.json"
    target.write_text("precious")
    write(project)
    path = project.folder / "quality" / "image.json"
    path.unlink()
    path.symlink_to(target)
    write(project, force=True)
    assert target.read_text() == "precious"
    assert not path.is_symlink()


def make_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda path: path.write_bytes(b" " * (MAX_FILE_BYTES + 1)), "has more than"),
        (lambda path: path.write_bytes(path.read_bytes()[:-30]), "not JSON"),
        (lambda path: path.write_bytes(b""), "not JSON"),
        (lambda path: path.write_bytes((path.parent / "text.json").read_bytes()),
         "this file is for 'image'"),
        (make_fifo, "no regular file"),
        (make_folder, "no regular file"),
        (loop, "cannot be read"),
    ],
)  # fmt: skip
def test_a_spoilt_file_is_told_in_a_sentence(project: Project, spoil: Any, what: str) -> None:
    write(project)
    spoil(project.folder / "quality" / "image.json")
    (problem,) = problems(project)
    assert problem.startswith("quality/image.json: ")
    assert what in problem


def test_a_suite_of_a_modality_that_nobody_declared_is_refused(project: Project) -> None:
    write(project)
    (project.folder / "quality" / "video.json").write_bytes(b"{}")
    (problem,) = problems(project)
    assert "declares no modality of this name" in problem


def test_all_files_are_told_at_once_and_other_names_are_left_alone(project: Project) -> None:
    write(project)
    folder = project.folder / "quality"
    (folder / "notes.txt").write_text("ours")
    for name in ("image", "text"):
        suite = json.loads((folder / f"{name}.json").read_text())
        suite["expectations"][0]["type"] = "expect_query_results_to_match_comparison"
        (folder / f"{name}.json").write_text(json.dumps(suite))
    assert [item.split(":")[0] for item in problems(project)] == [
        "quality/image.json", "quality/text.json",
    ]  # fmt: skip


def test_a_modality_may_not_be_called_as_the_suite_over_all_samples(project: Project) -> None:
    project.edit(lambda document: document["modalities"].update(samples={}))
    (project.folder / "quality").mkdir()
    with pytest.raises(BadInput, match="samples"):
        read_folder(read(project), project.folder)


def test_a_suite_is_written_the_same_every_time(project: Project) -> None:
    suites = contract_suites(read(project))
    assert {name: write_suite(suite) for name, suite in suites.items()} == {
        name: write_suite(suite) for name, suite in contract_suites(read(project)).items()
    }
