"""The entry of a child process: `python -m services.engines.child TASK REQUEST REPORT FD PARENT`.

It runs one task and leaves. What it says goes to REPORT, written whole or not at all; phases go to
the pipe FD as they start; everything that libraries print goes to the log its parent opened.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Protocol, cast

from services.engines.phases import Phases
from services.engines.requests import Availability, ChildReport, ErrorDocument
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import ModalgateError

TASKS = (
    "export_torch", "export_onnx", "build", "probe",
    "reference_torch", "reference_onnx", "run_engine",
)  # fmt: skip
"""Each is a module of `services.engines.tasks`: a task pays for its own imports only."""

_PR_SET_PDEATHSIG = 1


class Task(Protocol):
    """What a module of `services.engines.tasks` offers."""

    REQUEST: type[object]

    def run(self, request: object, phases: Phases) -> Availability | None: ...


def main(arguments: list[str]) -> int:
    name, request, report, pipe, parent = arguments
    _die_with(int(parent))
    phases = Phases(lambda phase: _announce(int(pipe), phase))
    answer = _perform(name, Path(request), phases)
    draft = Path(report + ".draft")
    draft.write_bytes(canonical_json(answer))
    draft.replace(report)
    return 0


def _perform(name: str, request: Path, phases: Phases) -> ChildReport:
    if name not in TASKS:
        raise SystemExit(f"no task is called {name!r}")
    with phases.phase("import"):
        task = cast(Task, importlib.import_module(f"services.engines.tasks.{name}"))
    try:
        availability = task.run(load(task.REQUEST, request.read_bytes()), phases)
    except ModalgateError as error:
        document = ErrorDocument(type(error).__name__, error.what, error.where, error.remedy)
        return ChildReport(phases.done, document)
    return ChildReport(phases.done, None, availability)


def _announce(pipe: int, phase: str) -> None:
    os.write(pipe, phase.encode() + b"\n")


def _die_with(parent: int) -> None:
    """Die when the parent does, even by SIGKILL (prctl(2), PR_SET_PDEATHSIG)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the line above
        raise SystemExit("the parent process is gone")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
