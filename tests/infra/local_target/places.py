"""Bundles on disk, and targets over the small gateway of `admin_server`, for these tests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.clocks import SystemClock
from infra.local_target import LocalTarget
from validators.contracts.deployment import Revision
from validators.contracts.digest import digest_bytes

SERVER = Path(__file__).with_name("admin_server.py")
SERVICE = "storefront"


@dataclass(frozen=True)
class Place:
    """A folder with a target's root, a journal of the gateway's changes, and bundles."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "deployments"

    @property
    def journal(self) -> list[str]:
        path = self.folder / "journal"
        return path.read_text().splitlines() if path.exists() else []

    def target(self, *more: str, **settings: Any) -> LocalTarget:
        command = [sys.executable, str(SERVER), "--journal", str(self.folder / "journal"), *more]
        return LocalTarget(
            self.root, command, SystemClock(), trusted_keys=self.folder / "keys", **settings
        )

    def revision(self, name: str, marks: Sequence[str] = ()) -> Revision:
        folder = self.folder / "bundles" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bundle.json").write_text(f'{{"name":"{name}"}}')
        for mark in marks:
            (folder / mark).touch()
        digest = digest_bytes((folder / "bundle.json").read_bytes())
        return Revision(SERVICE, name, digest, str(folder))
