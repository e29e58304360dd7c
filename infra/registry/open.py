"""The registry of a state folder: the embedded default, or a server that the setting names."""

from __future__ import annotations

from pathlib import Path

from infra.registry.ledger import FileLedger
from infra.registry.mlflow import MlflowRegistry
from validators.contracts.ports import Clock


def open_ledger(home: Path, clock: Clock) -> FileLedger:
    """The ledger below a state folder. `home` is MODALGATE_HOME."""
    return FileLedger(home / "registry" / "ledger.jsonl", clock)


def open_registry(
    home: Path, clock: Clock, *, tracking_uri: str | None = None, artifact_root: str | None = None
) -> MlflowRegistry:
    """The registry below a state folder (SQLite and a folder), or at `tracking_uri`.

    `artifact_root` is for the latter, where its server does not choose the place itself.
    """
    folder = home.absolute() / "registry"
    embedded = not tracking_uri
    return MlflowRegistry(
        tracking_uri or f"sqlite:///{folder / 'mlflow.db'}",
        open_ledger(home, clock),
        lock_folder=folder / "locks",
        artifact_root=folder / "artifacts" if embedded else artifact_root,
        clock=clock,
    )
