"""Starts a child process for one task and watches over it.

One fresh process per build: a failed TensorRT build contaminates the next one in its process, a
compiler can crash, a torch factory is somebody else's code. The child leads its own process group,
which is killed whole on cancel, timeout or too much memory; it dies with its parent.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import validators.contracts.errors as contract_errors
from services.children.errors import ChildCrashed
from services.children.guard import POLL_S, Guard
from services.children.guard import Cancel as Cancel
from services.children.guard import Limits as Limits
from services.children.phases import Progress
from services.children.report import ChildReport, ErrorDocument
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import DiskFull, ModalgateError

T = TypeVar("T")

MAX_LOG_BYTES = 256 * 1024  # kept of a log: its end

LEAST_FREE_BYTES = 4 * 1024**2
"""Below this, a child that could not even leave its answer is taken to have died of the disk."""

_ROOT = Path(__file__).resolve().parents[2]
# Secrets of the caller's environment do not reach a compiler or a model's own code.
_PASSED = frozenset((
    "PATH", "HOME", "USER", "LANG", "TZ", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "MODALGATE_HOME",
    "SSL_CERT_FILE",
))  # fmt: skip
_PASSED_PREFIXES = ("LC_", "OMP_", "MKL_", "OPENBLAS_", "CUDA_", "NVIDIA_", "XDG_", "PYTHON")


@dataclass(frozen=True, slots=True)
class ChildResult:
    """`report` holds the phases' times and the task's answer; `answer` reads it as a value."""

    report: ChildReport
    log: bytes
    peak_bytes: int

    def answer(self, kind: type[T]) -> T:
        """What the task returned."""
        return load(kind, self.report.answer.encode(), where="a child's answer")


def run_child(
    task: str,
    request: object,
    folder: Path,
    *,
    subject: str,
    limits: Limits | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> ChildResult:
    """Run one task in a fresh process: a module such as `services.engines.tasks.build`.

    `folder` is its scratch, `subject` names it in errors.

    Raises:
        ChildCrashed, ChildTimedOut, ChildTooLarge, BuildCancelled; or what the task itself raised.
    """
    reading, writing = os.pipe()
    try:
        child = start_child(
            task, request, folder, subject=subject, phases=writing,
            limits=limits or Limits(), cancel=cancel,
        )  # fmt: skip
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    try:
        _Watch(child.guard, reading, progress).until_done()
    finally:
        child.guard.end()
        os.close(reading)
    return child.result()


@dataclass(frozen=True, slots=True)
class StartedChild:
    """A child under its guard, and where it will leave what it has to say."""

    guard: Guard
    report: Path
    log: Path

    def result(self) -> ChildResult:
        """What it answered, once it has ended.

        Raises:
            ChildCrashed, DiskFull, or what the task raised.
        """
        text = _tail(self.log)
        if not self.report.is_file():
            if shutil.disk_usage(self.report.parent).free < LEAST_FREE_BYTES:
                raise _out_of_room(self.guard.what, self.report.parent)
            raise _crash(self.guard.what, self.guard.process.returncode, text)
        answer = load(ChildReport, self.report.read_bytes(), where=self.guard.what)
        if answer.error is not None:
            raise revive(answer.error)
        return ChildResult(answer, text, self.guard.peak_bytes)


def start_child(
    task: str,
    request: object,
    folder: Path,
    *,
    subject: str,
    phases: int,
    limits: Limits,
    cancel: Cancel | None = None,
    pass_fds: Sequence[int] = (),
) -> StartedChild:
    """Start one task, which announces its phases to the file descriptor `phases`.

    The child dies with the thread that calls this (prctl(2), PR_SET_PDEATHSIG), not only with its
    process. `pass_fds` are further descriptors that it gets, under their own numbers.
    """
    name = task.rpartition(".")[2]
    report, log = folder / f"{name}.report.json", folder / f"{name}.log"
    report.unlink(missing_ok=True)  # of an earlier child: it must not answer for this one
    question = folder / f"{name}.request.json"
    question.write_bytes(canonical_json(request))
    command = [
        sys.executable, "-P", "-X", "faulthandler", "-m", "services.children.child",
        task, str(question), str(report), str(phases), str(os.getpid()),
    ]  # fmt: skip
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(phases, *pass_fds),
            start_new_session=True,
            cwd=folder,
            env=child_environment(os.environ, folder),
        )
    return StartedChild(Guard(process, f"{name} of {subject}", limits, cancel), report, log)


def child_environment(own: Mapping[str, str], folder: Path) -> dict[str, str]:
    """What a child gets to know of the environment: an allow-list, and fixed seeds."""
    passed = {
        name: value
        for name, value in own.items()
        if name in _PASSED or name.startswith(_PASSED_PREFIXES)
    }
    path = os.pathsep.join(filter(None, (str(_ROOT), own.get("PYTHONPATH", ""))))
    fixed = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "TMPDIR": str(folder)}
    return {"OMP_NUM_THREADS": "1"} | passed | fixed


class _Watch:
    """A child that runs one task: its phases are passed on until it is done."""

    def __init__(self, guard: Guard, pipe: int, progress: Progress | None) -> None:
        self._guard = guard
        self._pipe = pipe
        self._progress = progress
        self._partial = b""

    def until_done(self) -> None:
        open_pipe = True
        while self._guard.process.poll() is None:
            if open_pipe:
                open_pipe = self._listen()
            else:
                self._wait_briefly()
            self._guard.check()
        while open_pipe and select.select([self._pipe], [], [], 0)[0]:
            open_pipe = self._listen()

    def _listen(self) -> bool:
        """Pass on announced phases; False once the child has closed its end."""
        if not select.select([self._pipe], [], [], POLL_S)[0]:
            return True
        data = os.read(self._pipe, 65536)
        *lines, self._partial = (self._partial + data).split(b"\n")
        if self._progress is not None:
            for line in lines:
                self._progress(line.decode(errors="replace"))
        return bool(data)

    def _wait_briefly(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guard.process.wait(POLL_S)


def _tail(log: Path) -> bytes:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - MAX_LOG_BYTES))
        return stream.read()


def _out_of_room(what: str, folder: Path) -> DiskFull:
    return DiskFull(
        f"the child process that worked on {what} ended without an answer, and its disk is full; "
        "nothing was kept",
        where=str(folder),
        remedy="Free some disk space, or set MODALGATE_HOME to another disk.",
    )


def _crash(what: str, code: int, log: bytes) -> ChildCrashed:
    lines = log.decode(errors="replace").strip().splitlines()
    last = f": {lines[-1][:200]}" if lines and code > 0 else ""
    if code < 0:
        name = signal.Signals(-code).name
        how = f"died of {name}"
        if name == "SIGKILL":
            how += " (by hand, or by the machine running out of memory)"
    else:
        how = f"ended with code {code} and no answer"
    return ChildCrashed(
        f"the child process {how}{last}; nothing was kept",
        where=what,
        remedy="Look at the model or source it was working on, then try again.",
    )


def revive(document: ErrorDocument) -> ModalgateError:
    """The error as it was in the child."""
    kind = getattr(contract_errors, document.kind, ModalgateError)
    error: ModalgateError = kind(document.what, where=document.where, remedy=document.remedy)
    return error
