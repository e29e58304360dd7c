"""A folder store, real Ed25519 keys, and tiny models exported once per session."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from infra.keys.file import FileSigner, TrustedKeys
from infra.objects.folder import FolderStore
from services.engines.export.encoder import export_encoder
from services.engines.workshop import EngineWorkshop
from tests.services.engines.models import TEXT_ENTRY, image_entry, write_factories


@pytest.fixture(scope="session")
def factories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipeline")
    write_factories(folder)
    return folder


@pytest.fixture(scope="session")
def image_onnx(factories: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_encoder(image_entry(), factories, tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="session")
def text_onnx(factories: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_encoder(TEXT_ENTRY, factories, tmp_path_factory.mktemp("text"))


@dataclass
class Yard:
    """A workshop and what it works with."""

    root: Path
    store: FolderStore
    signer: FileSigner
    verifier: TrustedKeys
    workshop: EngineWorkshop


def make_yard(root: Path) -> Yard:
    key = Ed25519PrivateKey.generate()
    store = FolderStore(root / "objects")
    signer, verifier = FileSigner(key), TrustedKeys([key.public_key()])
    workshop = EngineWorkshop(store, signer, verifier, root / "locks", root / "work")
    return Yard(root, store, signer, verifier, workshop)


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return make_yard(tmp_path)


@pytest.fixture(scope="session")
def shared_yard(tmp_path_factory: pytest.TempPathFactory) -> Yard:
    """For tests that only read what was built."""
    return make_yard(tmp_path_factory.mktemp("yard"))
