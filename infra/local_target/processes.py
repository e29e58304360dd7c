"""Processes by identity, not by number: a pid counts only with its start time and boot (Linux).

Signals go through a pidfd that is opened before the identity is checked, so that a number which
is given to another process in between is never signalled (pidfd_open(2)).
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from validators.contracts.errors import Unavailable

_PROC = Path("/proc")
_START_TIME = 19  # field 22 of proc_pid_stat(5), counted after the command's name
_GONE = frozenset({"Z", "X"})
_RESTORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process for good. `start_ticks` are clock ticks since boot."""

    pid: int
    start_ticks: int
    boot: str


def identify(pid: int) -> ProcessIdentity | None:
    """The process that has this number now, or None where there is none (zombies count as none)."""
    found = _look_up(pid)
    return None if found is None or found[1] in _GONE else found[0]


def is_alive(process: ProcessIdentity) -> bool:
    """Whether exactly this process still runs. Reaps it where it was this process's child."""
    found = _look_up(process.pid)
    if found is None or found[0] != process:
        return False
    if found[1] not in _GONE:
        return True
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)
    return False


def find_with_argument(argument: str) -> ProcessIdentity | None:
    """The running process that was started with exactly this argument."""
    wanted = os.fsencode(argument)
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in arguments:
            found = identify(int(entry.name))
            if found is not None:
                return found
    return None


def spawn_detached(what: str, command: Sequence[str], log: Path) -> ProcessIdentity:
    """Start a process in a session of its own, its output appended to `log` (0600), no shell.

    `what` is what people call it.

    Raises:
        Unavailable: the program cannot be started.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        pid = os.posix_spawnp(
            command[0],
            list(command),
            os.environ,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=_RESTORED,
        )
    except OSError as error:
        raise Unavailable(
            f"{what} cannot be started: {os.strerror(error.errno or 0)}",
            where=command[0],
            remedy="Check that the program exists and may be executed.",
        ) from error
    # Even a child that died at once is there until it is waited for.
    found = _look_up(pid)
    return ProcessIdentity(pid, -1, _boot()) if found is None else found[0]


def send_signal(process: ProcessIdentity, number: signal.Signals) -> None:
    """Signal exactly this process; does nothing where it is gone."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if identify(process.pid) == process:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)


def _look_up(pid: int) -> tuple[ProcessIdentity, str] | None:
    """Who has this number now, and the letter of its state."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    if len(fields) <= _START_TIME:
        return None
    return ProcessIdentity(pid, int(fields[_START_TIME]), _boot()), fields[0]


def _boot() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
