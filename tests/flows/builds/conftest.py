from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import flows.workspace
from flows.workspace import Workspace
from tests.flows.builds.shop import SERVICE, Shop, open_shop
from tests.infra.conftest import tiny_disk

__all__ = ["tiny_disk"]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds do not give way to whatever else this machine does while it tests."""
    monkeypatch.setattr(flows.workspace, "BACKGROUND_NICENESS", 0)


@pytest.fixture(scope="session")
def released_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Shop]:
    """A state folder with one release, to be copied."""
    home = tmp_path_factory.mktemp("released") / "home"
    made = open_shop(home)
    assert made.workspace.registry.versions(SERVICE) == []  # its database takes seconds to make
    return home, made


@pytest.fixture
def shop(
    released_home: tuple[Path, Shop], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    """A released service that nobody serves yet, in a state folder of its own."""
    home, made = released_home
    shutil.copytree(home, tmp_path / "home")
    monkeypatch.setenv("MODALGATE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.delenv("MODALGATE_STORE", raising=False)
    opened = Shop(Workspace.open(), made.bundle)
    yield opened
    opened.workspace.deployments.stop(SERVICE)
