"""`modalgate quality` by the real command line, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.cli.main import build
from tests.flows.cli.test_main import HEAVY, imported_by
from tests.scenarios.small import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def cli(*arguments: str) -> tuple[int, Any]:
    words = ["quality", *arguments, "--json"]
    ran = CliRunner().invoke(build(words), words)
    return ran.exit_code, json.loads(ran.stdout)


def test_suites_are_written_once_then_checked_then_shown(project: Project) -> None:
    path = str(project.pipeline)
    code, document = cli("init", path)
    assert (code, document["written"]) == (0, ["samples", "image", "text"])
    assert document["in_use"] is False
    project.edit(lambda value: value["gates"].update(quality={"suites": "quality"}))
    assert cli("init", path)[1]["kept"] == ["samples", "image", "text"]
    code, document = cli("check", path)
    assert (code, document["findings"]) == (0, [])
    code, document = cli("show", path, "image")
    assert [item["name"] for item in document["suites"]] == ["image"]
    assert document["suites"][0]["from_file"] is True


def test_check_tells_what_the_contract_says_otherwise_now(project: Project) -> None:
    project.edit(lambda value: value["gates"].update(quality={"suites": "quality"}))
    cli("init", str(project.pipeline))
    image = project.document["encoders"]["image"]
    project.edit(lambda value: image["preprocess"]["options"].update(size=64))
    _, document = cli("check", str(project.pipeline))
    assert [item["code"] for item in document["findings"]] == ["stale-suite"]
    (suite,) = [item for item in document["suites"] if item["name"] == "image"]
    assert suite["contract"] == ["preprocess.size: 32 became 64"]


def test_a_wrong_file_is_bad_input_with_its_place(project: Project) -> None:
    project.edit(lambda value: value["gates"].update(quality={"suites": "quality"}))
    cli("init", str(project.pipeline))
    path = project.folder / "quality" / "text.json"
    suite = json.loads(path.read_text())
    suite["expectations"][0]["kwargs"]["row_condition"] = "os.system('true')"
    path.write_text(json.dumps(suite))
    for verb in ("check", "show"):
        code, document = cli(verb, str(project.pipeline))
        assert (code, document["status"]) == (2, "bad-input")
        assert document["error"]["where"].startswith("quality/text.json, expectations[0]")


def test_a_suite_that_is_not_there_names_those_that_are(project: Project) -> None:
    code, document = cli("show", str(project.pipeline), "smell")
    assert code == 2
    assert "samples, image, text" in document["error"]["remedy"]


@pytest.mark.slow
def test_looking_at_suites_imports_nothing_heavy(project: Project, tmp_path: Path) -> None:
    found = imported_by("quality", "show", str(project.pipeline), home=tmp_path)
    assert found.isdisjoint({*HEAVY, "great_expectations"})
    assert not list(tmp_path.glob("objects"))
