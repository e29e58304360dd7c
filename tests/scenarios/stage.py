"""Where whole releases run: one state folder at one path, put back to a kept state for each test.

The path stays the same because the registry writes absolute paths into its database.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil

from flows.retention import sweep
from infra.clocks import SystemClock
from infra.objects.folder import FolderStore
from infra.registry.ledger import FileLedger
from tests.scenarios.small import SERVICE, Project
from tests.scenarios.warm import Ran, Run, Warm

AUTHOR = "olga"
PEOPLE = ("ana", "ben")
TIMEOUT_S = 500


class Stage:
    """A state folder, and the command line that works in it."""

    def __init__(self, folder: Path, prefect_url: str) -> None:
        self.folder, self.home = folder, folder / "home"
        self._kept = folder / "kept"
        for path in (folder / "runs", folder / "elsewhere", self._kept):
            path.mkdir(parents=True)
        self.environment: dict[str, str | None] = {
            "MODALGATE_HOME": str(self.home),
            "MODALGATE_USER": AUTHOR,
            "MODALGATE_STORE": None,
            "MODALGATE_REGISTRY": None,
            "MODALGATE_BUILDS": "off",
        }
        self.warm = Warm(
            folder / "runs",
            {"PREFECT_API_URL": prefect_url, "MODALGATE_HOME": str(folder / "elsewhere")},
        )

    def start(self, *arguments: str, **environment: str | None) -> Run:
        """A run of the command line, under way."""
        return self.warm.start(*arguments, environment={**self.environment, **environment})

    def cli(self, *arguments: str, **environment: str | None) -> Ran:
        """A run of the command line, to its end."""
        return self.start(*arguments, **environment).wait()

    def release(
        self, project: Project, *options: str, people: tuple[str, ...] = PEOPLE, **env: str | None
    ) -> Ran:
        return self.cli(*release_arguments(project, *options, people=people), "--json", **env)

    def command(self, *arguments: str, **environment: str) -> Ran:
        """The command line as a user starts it, with an orchestrator of its own."""
        given = {name: value for name, value in self.environment.items() if value is not None}
        ended = subprocess.run(
            [sys.executable, "-m", "flows.cli", *arguments],
            env={**without_settings(), **given, **environment},
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        return Ran(ended.returncode, ended.stdout, ended.stderr)

    def keep(self, name: str) -> None:
        """Keep the state folder as it is now under a name."""
        assert self.processes() == []
        shutil.rmtree(self.home / "prefect", ignore_errors=True)
        shutil.copytree(self.home, self._kept / name, symlinks=True)

    def kept(self, name: str) -> bool:
        return (self._kept / name).is_dir()

    def restore(self, name: str) -> None:
        """Put the state folder back to what was kept."""
        self.clear()
        shutil.copytree(self._kept / name, self.home, symlinks=True)

    def clear(self) -> None:
        """End what runs, and empty the state folder."""
        for process in self.processes():
            process.kill()
        psutil.wait_procs(self.processes(), timeout=30)
        shutil.rmtree(self.home, ignore_errors=True)

    def close(self) -> None:
        self.clear()
        self.warm.close()

    def processes(self) -> list[psutil.Process]:
        """Every process that works in this state folder."""
        return [process for process in psutil.process_iter() if self._works_here(process)]

    def _works_here(self, process: psutil.Process) -> bool:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            named = process.environ().get("MODALGATE_HOME") == str(self.home)
            return named or any(str(self.home) in word for word in process.cmdline())
        except psutil.Error:
            return False

    @property
    def store(self) -> FolderStore:
        return FolderStore(self.home / "objects")

    @property
    def ledger(self) -> FileLedger:
        return FileLedger(self.home / "registry" / "ledger.jsonl", SystemClock())

    def orphans(self) -> list[bytes]:
        """The beginnings of the objects that nothing in the store leads to."""
        store = self.store
        return [store.get(digest)[:200] for digest in sweep(store, dry_run=True).removed]

    def registered(self) -> list[dict[str, Any]]:
        """The registered versions with their aliases and reviews, newest first."""
        versions: list[dict[str, Any]] = self.cli("review", "list", SERVICE, "--json").document[
            "versions"
        ]
        return versions

    def registry_runs(self) -> list[tuple[str, str]]:
        """MLflow's own runs as (status, life-cycle stage), read from its database."""
        with closing(sqlite3.connect(self.home / "registry" / "mlflow.db")) as database:
            return list(database.execute("select status, lifecycle_stage from runs"))

    def aliases(self) -> dict[str, str]:
        """Alias → version number."""
        return {name: row["version"] for row in self.registered() for name in row["aliases"]}

    def evidence(self, gate: str) -> dict[str, Any]:
        """A gate's verdict as it lies on disk for people."""
        path = self.home / "evidence" / SERVICE / f"{gate}.json"
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return document

    def inventory(self) -> dict[str, object]:
        """Everything durable that a release could add to."""
        store = self.store
        return {
            "objects": sorted(store.objects()),
            "references": {name: store.reference(name) for name in sorted(store.references())},
            "ledger": self.ledger.verify(),
            "runs": len(self.registry_runs()),
        }


def release_arguments(
    project: Project, *options: str, people: tuple[str, ...] = PEOPLE
) -> tuple[str, ...]:
    """`release FILE` with its approvals."""
    approvals = tuple(word for name in people for word in ("--approve-as", name))
    return ("release", str(project.pipeline), *approvals, *options)


def runs(pid: int) -> bool:
    """Whether the process lives; an ended one that nobody has reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def without_settings() -> dict[str, str]:
    """This process's environment without what the orchestrator and the platform read from it."""
    kinds = ("PREFECT_", "MODALGATE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(kinds)}


def findings(document: dict[str, Any], gate: str) -> list[dict[str, Any]]:
    """The findings of one gate in a release's document."""
    return [
        finding
        for verdict in document["verdicts"]
        if verdict["gate"] == gate
        for finding in verdict["findings"]
    ]


def outcomes(document: dict[str, Any]) -> dict[str, str]:
    """Gate → outcome."""
    return {verdict["gate"]: verdict["outcome"] for verdict in document["verdicts"]}
