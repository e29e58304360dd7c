"""Holds one running child to its time and memory, and ends it whole.

Memory is watched as resident bytes of the whole group rather than limited by RLIMIT_AS or
RLIMIT_DATA: compilers map and reserve far more than they touch (arenas, thread stacks), and hitting
those limits ends in a crash without a reason. The watch can be late by one look (POLL_S); the
machine's own out-of-memory killer stays the last resort, and is reported as such.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from services.children.errors import BuildCancelled, ChildTimedOut, ChildTooLarge

POLL_S = 0.05

Cancel = Callable[[], bool]
"""Asked often; True means stop (for example `threading.Event().is_set`)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one child may take."""

    timeout_s: float = 900.0
    memory_bytes: int = 6 * 1024**3  # resident, of the whole process group
    niceness: int = 5  # a build gives way to what is being served


class Guard:
    """One running child: its deadline, its memory, its end. `what` names it in errors."""

    def __init__(
        self, process: subprocess.Popen[bytes], what: str, limits: Limits, cancel: Cancel | None
    ) -> None:
        self.what = what
        self.process = process
        self.peak_bytes = 0
        self._limits = limits
        self._cancel = cancel
        self._timeout_s = limits.timeout_s
        self._ends = 0.0
        self.allow(limits.timeout_s)
        _lower_priority(process.pid, limits.niceness)

    def allow(self, seconds: float) -> None:
        """A new deadline, from now."""
        self._timeout_s = seconds
        self._ends = time.perf_counter() + seconds

    def check(self) -> None:
        """Raise BuildCancelled, ChildTimedOut or ChildTooLarge; the caller then calls `end`."""
        if self._cancel is not None and self._cancel():
            raise BuildCancelled(
                "cancelled; nothing was kept", where=self.what, remedy="Start it again when wanted."
            )
        if time.perf_counter() > self._ends:
            raise ChildTimedOut(
                f"not done within {self._timeout_s:g} s; stopped, nothing was kept",
                where=self.what,
                remedy="Give it more time, or a smaller model or fewer profiles.",
            )
        resident = _resident_bytes(self.process.pid)
        self.peak_bytes = max(self.peak_bytes, resident)
        if resident > self._limits.memory_bytes:
            raise ChildTooLarge(
                f"took {resident >> 20} MiB of memory, over its limit of "
                f"{self._limits.memory_bytes >> 20} MiB; stopped, nothing was kept",
                where=self.what,
                remedy="Raise the limit, or lower the largest profile.",
            )

    def end(self) -> None:
        """Nothing of the group survives this."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


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
