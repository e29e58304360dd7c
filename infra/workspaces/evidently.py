"""An Evidently workspace in a folder: a project a service, and the latest reports of each.

A report holds what was computed: figures, histograms, tests. The rows that it was computed from are
never stored with it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from evidently.core.report import Snapshot
from evidently.ui.workspace import Workspace

from infra.files import disk_faults, locked, make_private_folder, write_atomically
from validators.contracts.digest import Digest, short

KEPT = 100
_INDEX = "reports.json"


class ReportWorkspace:
    """Adds reports, each once, and removes the oldest. Several processes may use one folder."""

    def __init__(self, folder: Path, index: Path, *, kept: int = KEPT) -> None:
        """`index` is a folder of our own, where we write down which report is of which window."""
        self._folder, self._index, self._kept = folder, index, kept

    def add(self, service: str, window: Digest, report: Snapshot) -> bool:
        """Store the report of a window; False where it is there already.

        Raises:
            Unavailable: no room on the disk.
        """
        with self._open() as workspace:
            project = self._project(workspace, service)
            known = self._read()
            kept: dict[str, str] = known.get(service, {})
            there = {str(found) for found in workspace.list_runs(project)}
            kept = {name: found for name, found in kept.items() if found in there}
            if window in kept:
                return False
            added = workspace.add_run(project, report, include_data=False, name=short(window))
            kept[window] = str(added.id)
            for name in list(kept)[: -self._kept]:
                workspace.delete_run(project, UUID(kept.pop(name)))
            # what a killed process stored and did not write down is nobody's
            for stray in there - set(kept.values()):
                with contextlib.suppress(FileNotFoundError):
                    workspace.delete_run(project, UUID(stray))
            self._write({**known, service: kept})
            return True

    def reports(self, service: str) -> list[Digest]:
        """The windows with a report, oldest first."""
        with self._open():
            return [Digest(name) for name in self._read().get(service, {})]

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        with disk_faults("the report workspace", str(self._folder), "Make room on the disk."):
            make_private_folder(self._folder)
            make_private_folder(self._index)
            with locked(self._index / "lock"):
                yield Workspace.create(str(self._folder))

    @staticmethod
    def _project(workspace: Any, service: str) -> UUID:
        found = workspace.search_project(service) or [
            workspace.create_project(service, "Live traffic beside the data of the live version.")
        ]
        identity: UUID = found[0].id
        return identity

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            found: dict[str, dict[str, str]] = json.loads((self._index / _INDEX).read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return found

    def _write(self, known: dict[str, dict[str, str]]) -> None:
        write_atomically(self._index / _INDEX, json.dumps(known).encode())
