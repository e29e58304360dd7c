"""What versions are compared on: a file's own media, time and again."""

from __future__ import annotations

from pathlib import Path

from flows.compatibility.items import items_of
from flows.compatibility.sides import Side
from flows.home import Home
from flows.workspace import Workspace
from tests.scenarios.small import Project
from validators.compatibility.matrix import Role
from validators.contracts.pipeline_file import parse_pipeline


def test_a_file_is_read_again_where_its_quarantine_was_emptied(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    pipeline = parse_pipeline(project.pipeline.read_text())
    workspace = Workspace(Home(tmp_path / "home"))
    side = Side("project/pipeline.yaml", Role.CANDIDATE, pipeline, project.folder, {}, {})
    for _ in range(2):
        with items_of(workspace, [side]) as found:
            assert found.raw(found.samples[-1], "text")
            assert found.media.contains(found.samples[0].media[0].digest)
        assert not found.media.contains(found.samples[0].media[0].digest)
