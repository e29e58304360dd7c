"""What whole releases share: one orchestrator, one warm process, one released service to copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.small import Project
from tests.scenarios.stage import Stage, release_arguments
from tests.scenarios.warm import Ran

RELEASED = "released"


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory, prefect_url: str) -> Iterator[Stage]:
    made = Stage(tmp_path_factory.mktemp("stage"), prefect_url)
    yield made
    made.close()


@pytest.fixture(scope="session")
def first_release(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Ran]:
    """A first release by the real command, kept for other tests; and what `stop` said after it."""
    stage.clear()
    project = Project(tmp_path_factory.mktemp("first") / "project")
    ran = stage.command(*release_arguments(project), "--json")
    stopped = stage.command("stop", "shapes", "--json")
    assert (ran.code, stopped.code) == (0, 0), ran.stdout + ran.stderr + stopped.stdout
    stage.keep(RELEASED)
    return ran, stopped


@pytest.fixture
def fresh(stage: Stage) -> Iterator[Stage]:
    """An empty state folder."""
    stage.clear()
    yield stage
    stage.clear()


@pytest.fixture
def released(stage: Stage, first_release: tuple[Ran, Ran]) -> Iterator[Stage]:
    """A state folder in which the unchanged project was released as version 1, and stopped."""
    stage.restore(RELEASED)
    yield stage
    stage.clear()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")
