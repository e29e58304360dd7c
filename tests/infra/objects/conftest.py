from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from infra.objects.open import open_store
from tests.infra.seaweed import Seaweed
from validators.contracts.digest import Digest, hex_of
from validators.contracts.ports import ObjectStore

BUCKET = "modalgate"


@dataclass
class Place:
    """A store under test, and what can be done to it behind its back."""

    url: str
    environment: dict[str, str]
    overwrite: Callable[[Digest, bytes], None]
    vanish: Callable[[], None]
    come_back: Callable[[], None]

    def open(self) -> ObjectStore:
        return open_store(self.url)


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    server = Seaweed(tmp_path_factory.mktemp("seaweed"))
    server.start()
    try:
        server.make_bucket(BUCKET)
        yield server
    finally:
        server.stop()


@pytest.fixture
def s3_environment(seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in seaweed.environment.items():
        monkeypatch.setenv(name, value)
    return seaweed.environment


def folder_place(tmp_path: Path) -> Place:
    root, hidden = tmp_path / "store", tmp_path / "hidden"

    def overwrite(digest: Digest, data: bytes) -> None:
        name = hex_of(digest)
        (root / "objects" / name[:2] / name).write_bytes(data)

    return Place(
        url=root.as_uri(),
        environment={},
        overwrite=overwrite,
        vanish=lambda: shutil.move(root, hidden) and None,
        come_back=lambda: shutil.move(hidden, root) and None,
    )


def s3_place(seaweed: Seaweed, environment: dict[str, str]) -> Place:
    prefix = secrets.token_hex(8)

    def overwrite(digest: Digest, data: bytes) -> None:
        key = f"{prefix}/objects/{hex_of(digest)}"
        seaweed.client().put_object(Bucket=BUCKET, Key=key, Body=data)

    def come_back() -> None:
        seaweed.start()
        seaweed.make_bucket(BUCKET)

    url = f"s3://{BUCKET}/{prefix}"
    return Place(url, environment, overwrite, vanish=seaweed.stop, come_back=come_back)


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return folder_place(tmp_path)
    return s3_place(request.getfixturevalue("seaweed"), request.getfixturevalue("s3_environment"))


@pytest.fixture
def store(place: Place) -> ObjectStore:
    return place.open()


@pytest.fixture
def child_environment(place: Place) -> dict[str, str]:
    return {**os.environ, **place.environment}
