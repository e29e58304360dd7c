"""What versions are compared on: even parts of a data set, and a file's media time and again."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from flows.compatibility.items import items_of, spread
from flows.compatibility.sides import Side
from flows.home import Home
from flows.workspace import Workspace
from tests.scenarios.small import Project
from validators.compatibility.matrix import Role
from validators.contracts.pipeline_file import parse_pipeline


@given(st.integers(0, 300), st.integers(1, 80))
def test_values_are_taken_at_even_distances_and_each_once(size: int, count: int) -> None:
    taken = spread(range(size), count)
    assert len(taken) == min(size, count)
    steps = {later - earlier for earlier, later in pairwise(taken)}
    assert all(step > 0 for step in steps)
    assert max(steps, default=1) - min(steps, default=1) <= 1
    assert not taken or taken[0] == 0


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
