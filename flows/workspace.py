"""The composition root: every port with the implementation that the environment asks for.

MODALGATE_STORE      object store URL (s3://bucket/prefix); default: a folder of the state folder
MODALGATE_REGISTRY   MLflow tracking URI; default: SQLite in the state folder
MODALGATE_USER       who acts, for the ledger; default: the login name
"""

from __future__ import annotations

import getpass
import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from flows.home import Home
from infra.builds import FolderQueue
from infra.clocks import SystemClock
from infra.files import write_atomically
from infra.keys.file import FileSigner, TrustedKeys, open_verifier
from infra.keys.secret import open_secret
from infra.local_target import LocalTarget
from infra.objects.folder import FolderStore
from infra.objects.open import open_store
from infra.registry.ledger import FileLedger
from infra.windows import WindowFolder
from services.children.process import Limits
from services.engines.workshop import EngineWorkshop
from validators.contracts.errors import Unsupported
from validators.contracts.ports import Clock, DeploymentTarget, Ledger, ObjectStore, Registry

BACKGROUND_NICENESS = 15
WINDOWS_KEY = "windows.key"
"""Seals recorded windows; destroying it forgets them all."""

SERVE_COMMAND = (sys.executable, "-m", "flows.serve")


@dataclass(frozen=True)
class Workspace:
    """What flows and verbs work with. Each part opens when it is first used."""

    home: Home

    @staticmethod
    def open() -> Workspace:
        return Workspace(Home.from_environment())

    @cached_property
    def clock(self) -> Clock:
        return SystemClock()

    @cached_property
    def store(self) -> ObjectStore:
        url = os.environ.get("MODALGATE_STORE", "").strip()
        return open_store(url) if url else FolderStore(self.home.folder("objects"))

    def quarantine(self, service: str) -> ObjectStore:
        """A service's raw media: always on this machine, never in the shared store."""
        return FolderStore(self.home.folder("quarantine", service, "objects"))

    @cached_property
    def signer(self) -> FileSigner:
        return FileSigner.create_or_open(self.home.folder("keys") / "signing.pem")

    @cached_property
    def verifier(self) -> TrustedKeys:
        return open_verifier(self.trusted_keys)

    @cached_property
    def trusted_keys(self) -> Path:
        """The folder of public keys; this machine's own is in it."""
        folder = self.home.folder("keys", "trusted")
        self.signer.publish(folder)
        return folder

    @cached_property
    def ledger(self) -> Ledger:
        return FileLedger(self.home.folder("registry") / "ledger.jsonl", self.clock)

    @property
    def tracking_uri(self) -> str:
        configured = os.environ.get("MODALGATE_REGISTRY", "").strip()
        return configured or f"sqlite:///{self.home.folder('registry') / 'mlflow.db'}"

    @cached_property
    def registry(self) -> Registry:
        from infra.registry.mlflow import MlflowRegistry  # noqa: PLC0415 two seconds to import

        return MlflowRegistry(
            self.tracking_uri,
            ledger=self.ledger,
            lock_folder=self.home.folder("registry", "locks"),
            artifact_root=self.home.folder("registry", "artifacts"),
            clock=self.clock,
        )

    @cached_property
    def workshop(self) -> EngineWorkshop:
        return self._workshop(Limits())

    @cached_property
    def background_workshop(self) -> EngineWorkshop:
        """A workshop that gives way to everything else on this machine."""
        return self._workshop(Limits(niceness=BACKGROUND_NICENESS))

    def _workshop(self, limits: Limits) -> EngineWorkshop:
        return EngineWorkshop(
            self.store,
            signer=self.signer,
            verifier=self.verifier,
            locks=self.home.folder("engines", "locks"),
            workdir=self.home.folder("engines", "work"),
            limits=limits,
        )

    @cached_property
    def builds(self) -> FolderQueue:
        """Shapes that gateways of this machine could not serve, waiting for engines."""
        return FolderQueue(self.home.folder("builds"), self.clock)

    def windows(self, service: str) -> WindowFolder:
        """What gateways of this machine recorded of a service's live requests."""
        key = open_secret(self.home.folder("keys") / WINDOWS_KEY)
        return WindowFolder(self.home.folder("windows") / service, service, key, self.clock)

    def write_evidence(self, service: str, name: str, document: bytes) -> None:
        """A readable copy of a document in the state folder, for people; JSON is indented."""
        folder = self.home.folder("evidence", service)
        readable = msgspec.json.format(document) if name.endswith(".json") else document
        write_atomically(folder / name, readable)

    def target(self, name: str) -> DeploymentTarget:
        """The deployment target of a pipeline's `deploy.target`.

        Raises:
            Unsupported: a target that this version cannot deploy to.
        """
        if name != "local":
            raise Unsupported(
                f"this version does not deploy to {name!r}",
                where="deploy.target",
                remedy="Write deploy: {target: local} in the pipeline file.",
            )
        return self.deployments

    @cached_property
    def deployments(self) -> LocalTarget:
        """The local target of this state folder."""
        return self.local_target(self.home.folder("deployments"), *self.serving_options)

    @property
    def serving_options(self) -> tuple[str, ...]:
        """Words of the gateway's command line: where it asks for engines, and what it records."""
        return (
            *("--build-queue", str(self.home.folder("builds"))),
            *("--shapes", str(self.home.folder("shapes"))),
            *("--windows", str(self.home.folder("windows"))),
            *("--windows-key", str(self.home.folder("keys") / WINDOWS_KEY)),
            *("--watch", str(self.home.folder("watch"))),
        )

    def local_target(self, root: Path, *options: str) -> LocalTarget:
        """A target below `root`; `options` are further words of the gateway's command line."""
        command = (*SERVE_COMMAND, *options)
        return LocalTarget(root, command, self.clock, trusted_keys=self.trusted_keys)


def actor() -> str:
    """Who acts, for the ledger."""
    return os.environ.get("MODALGATE_USER", "").strip() or getpass.getuser()
