"""One folder holds all state: `MODALGATE_HOME`, safe to delete, never the working directory.

objects/      content-addressed store and its references (MODALGATE_STORE replaces it)
quarantine/   raw media, readable by the owner alone, emptied by retention
keys/         the signing key (0600), the pseudonym key (0600), trusted/ public keys
registry/     MLflow's database and artifacts (MODALGATE_REGISTRY replaces them), ledger.jsonl
bundles/      materialised bundles that this machine serves
deployments/  the local target's state, one folder a service
engines/      build folders and single-flight locks
builds/       shapes that no engine covered, waiting for one to be built in the background
sources/      the folder of each release's pipeline file, to find the source models again
prefect/      the embedded orchestrator's database
shapes/       what serving recorded, one file an encoder; the release plans profiles from it
windows/      vectors and measures of live requests, sealed, a week of them at most
watch/        what the drift watch of each service knows, and messages that wait to be told
workspace/    reports of judged windows (`evidently ui --workspace`)
evidence/     each release's documents in readable form
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from validators.contracts.errors import BadInput


@dataclass(frozen=True, slots=True)
class Home:
    """Paths under one root; folders are made as they are first asked for, for the owner alone."""

    root: Path

    @staticmethod
    def from_environment() -> Home:
        configured = os.environ.get("MODALGATE_HOME", "").strip()
        if configured:
            return Home(Path(configured).expanduser().resolve())
        data = os.environ.get("XDG_DATA_HOME", "").strip() or "~/.local/share"
        return Home((Path(data) / "modalgate").expanduser().resolve())

    def folder(self, *parts: str) -> Path:
        """A folder below the root, made with mode 0700 where it is missing."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self.root
            for part in parts:
                path = path / part
                path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise BadInput(
                f"the state folder cannot be made: {error.strerror}",
                where=str(self.root),
                remedy="Set MODALGATE_HOME to a folder that you may write.",
            ) from error
        return path

    def recording(self, service: str, encoder: str) -> Path:
        """Where the shapes that an encoder was asked for are recorded."""
        return self.folder("shapes", service) / f"{encoder}.json"

    def lock(self, name: str) -> Path:
        return self.folder("locks") / f"{name}.lock"
