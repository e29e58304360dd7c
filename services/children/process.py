"""Starts a child process for one task and watches over it.

One fresh process per build: a failed TensorRT build contaminates the next one in its process, a
compiler can crash, a torch factory is somebody else's code. The child leads its own process group,
which is killed whole on cancel, timeout or too much memory; it dies with its parent.

Memory is watched as resident bytes of the whole group rather than limited by RLIMIT_AS or
RLIMIT_DATA: compilers map and reserve far more than they touch (arenas, thread stacks), and hitting
those limits ends in a crash without a reason. The watch can be late by one look (POLL_S); the
machine's own out-of-memory killer stays the last resort, and is reported as such.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

import validators.contracts.errors as contract_errors
from services.children.errors import BuildCancelled, ChildCrashed, ChildTimedOut, ChildTooLarge
from services.children.phases import Progress
from services.children.report import ChildReport, ErrorDocument
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import ModalgateError

T = TypeVar("T")

POLL_S = 0.05
MAX_LOG_BYTES = 256 * 1024  # kept of a log: its end

_ROOT = Path(__file__).resolve().parents[2]
# Secrets of the caller's environment do not reach a compiler or a model's own code.
_PASSED = frozenset((
    "PATH", "HOME", "USER", "LANG", "TZ", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "MODALGATE_HOME",
    "SSL_CERT_FILE",
))  # fmt: skip
_PASSED_PREFIXES = ("LC_", "OMP_", "MKL_", "OPENBLAS_", "CUDA_", "NVIDIA_", "XDG_", "PYTHON")

Cancel = Callable[[], bool]
"""Asked often; True means stop (for example `threading.Event().is_set`)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one child may take."""

    timeout_s: float = 900.0
    memory_bytes: int = 6 * 1024**3  # resident, of the whole process group
    niceness: int = 5  # a build gives way to what is being served


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
    limits = limits or Limits()
    name = task.rpartition(".")[2]
    report, log = folder / f"{name}.report.json", folder / f"{name}.log"
    report.unlink(missing_ok=True)  # of an earlier child: it must not answer for this one
    reading, writing = os.pipe()
    try:
        process = _start(task, request, folder, report=report, log=log, pipe=writing)
    finally:
        os.close(writing)
    watch = _Watch(
        process, reading, f"{name} of {subject}", limits=limits, progress=progress, cancel=cancel
    )
    try:
        watch.until_done()
    finally:
        watch.end()
        os.close(reading)
    text = _tail(log)
    if not report.is_file():
        raise _crash(watch.what, process.returncode, text)
    answer = load(ChildReport, report.read_bytes(), where=watch.what)
    if answer.error is not None:
        raise _revive(answer.error)
    return ChildResult(answer, text, watch.peak_bytes)


def _start(
    task: str, request: object, folder: Path, *, report: Path, log: Path, pipe: int
) -> subprocess.Popen[bytes]:
    question = report.with_name(report.name.removesuffix(".report.json") + ".request.json")
    question.write_bytes(canonical_json(request))
    command = [
        sys.executable, "-P", "-X", "faulthandler", "-m", "services.children.child",
        task, str(question), str(report), str(pipe), str(os.getpid()),
    ]  # fmt: skip
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(pipe,),
            start_new_session=True,
            cwd=folder,
            env=child_environment(os.environ, folder),
        )


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
    """One running child: its pipe, its memory, its deadline."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        pipe: int,
        what: str,
        *,
        limits: Limits,
        progress: Progress | None,
        cancel: Cancel | None,
    ) -> None:
        self.what = what
        self.peak_bytes = 0
        self._process = process
        self._pipe = pipe
        self._limits = limits
        self._progress = progress
        self._cancel = cancel
        self._partial = b""
        self._ends = time.perf_counter() + limits.timeout_s
        _lower_priority(process.pid, limits.niceness)

    def until_done(self) -> None:
        open_pipe = True
        while self._process.poll() is None:
            if open_pipe:
                open_pipe = self._listen()
            else:
                self._wait_briefly()
            self._hold_to_limits()
        while open_pipe and select.select([self._pipe], [], [], 0)[0]:
            open_pipe = self._listen()

    def end(self) -> None:
        """Nothing of the group survives this."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

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
            self._process.wait(POLL_S)

    def _hold_to_limits(self) -> None:
        if self._cancel is not None and self._cancel():
            raise BuildCancelled(
                "cancelled; nothing was kept", where=self.what, remedy="Start it again when wanted."
            )
        if time.perf_counter() > self._ends:
            raise ChildTimedOut(
                f"not done within {self._limits.timeout_s:g} s; stopped, nothing was kept",
                where=self.what,
                remedy="Give it more time, or a smaller model or fewer profiles.",
            )
        resident = _resident_bytes(self._process.pid)
        self.peak_bytes = max(self.peak_bytes, resident)
        if resident > self._limits.memory_bytes:
            raise ChildTooLarge(
                f"took {resident >> 20} MiB of memory, over its limit of "
                f"{self._limits.memory_bytes >> 20} MiB; stopped, nothing was kept",
                where=self.what,
                remedy="Raise the limit, or lower the largest profile.",
            )


def _lower_priority(pid: int, niceness: int) -> None:
    # gone already, or the caller is nicer than that
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
    # A session of its own is also a scheduling group of its own where Linux groups by session, and
    # niceness weighs within a group only (sched(7), autogroup).
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(niceness))


def _resident_bytes(pid: int) -> int:
    try:
        leader = psutil.Process(pid)
        members = [leader, *leader.children(recursive=True)]
    except psutil.Error:
        return 0
    total = 0
    for member in members:
        try:
            total += member.memory_info().rss
        except psutil.Error:
            continue
    return total


def _tail(log: Path) -> bytes:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - MAX_LOG_BYTES))
        return stream.read()


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


def _revive(document: ErrorDocument) -> ModalgateError:
    kind = getattr(contract_errors, document.kind, ModalgateError)
    error: ModalgateError = kind(document.what, where=document.where, remedy=document.remedy)
    return error
