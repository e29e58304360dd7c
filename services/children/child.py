"""The entry of a child process: `python -m services.children.child TASK REQUEST REPORT FD PARENT`.

It runs one task and leaves. What it says goes to REPORT, written whole or not at all; phases go to
the pipe FD as they start; everything that libraries print goes to the log its parent opened.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import os
import re
import signal
import sys
from pathlib import Path
from typing import Protocol, cast

from services.children.phases import Phases
from services.children.report import ChildReport, ErrorDocument
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import DiskFull, ModalgateError

_TASK = re.compile(r"services\.[a-z_]+\.tasks\.[a-z_]+")
"""Tasks are modules of the rooms' `tasks` packages; each pays for its own imports only."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_PR_SET_PDEATHSIG = 1


class Task(Protocol):
    """What a task's module offers. What `run` returns has a canonical JSON form, or is None."""

    REQUEST: type[object]

    def run(self, request: object, phases: Phases) -> object: ...


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
    if not _TASK.fullmatch(name):
        raise SystemExit(f"no task is called {name!r}")
    with phases.phase("import"):
        task = cast(Task, importlib.import_module(name))
    try:
        answer = task.run(load(task.REQUEST, request.read_bytes()), phases)
    except ModalgateError as error:
        document = ErrorDocument(type(error).__name__, error.what, error.where, error.remedy)
        return ChildReport(phases.done, document)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        return ChildReport(phases.done, _disk_full(error))
    text = "" if answer is None else canonical_json(answer).decode()
    return ChildReport(phases.done, None, text)


def _disk_full(error: OSError) -> ErrorDocument:
    folder = Path(error.filename).parent if isinstance(error.filename, str) else Path.cwd()
    return ErrorDocument(
        DiskFull.__name__,
        "the disk that the child process writes to is full or over its quota; nothing was kept",
        str(folder),
        "Free some disk space, or set MODALGATE_HOME to another disk.",
    )


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
