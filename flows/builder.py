"""The embedded builder: watches the queue beside a gateway, and works it off at low priority.

`python -m flows.builder --service NAME --lock FILE`, started detached by what brings a gateway up
(`MODALGATE_BUILDS=off` in its environment: not at all). One runs per service, by the lock; it ends
when the service's gateway is gone. Each build runs as `modalgate engines build` in a child, so that
this process stays small.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flows.builds.diary import LOG_FORMAT, Diary, last_line, said_by
from flows.home import Home
from flows.locks import exclusive
from infra.builds import FolderQueue
from infra.clocks import SystemClock
from infra.local_target.gateway import find_gateway
from infra.local_target.processes import (
    ProcessIdentity,
    find_with_argument,
    is_alive,
    send_signal,
    spawn_detached,
)
from validators.contracts.builds import BuildQueue, BuildState
from validators.contracts.errors import Conflict, ModalgateError

SETTING = "MODALGATE_BUILDS"
LOOK_S = 2.0
RETRY_S = 30.0
END_S = 10.0
STOP_S = 20.0
NICENESS = 15
_BUILD = (sys.executable, "-m", "flows.cli", "engines", "build", "--json")
_GATEWAY_LOOKS = 3
"""A gateway that is started anew is away for a moment: so many looks in a row it has to be gone."""


def ensure_builder(home: Home, service: str) -> None:
    """Start the service's builder where none runs, unless the environment says not to."""
    if os.environ.get(SETTING, "").strip().lower() == "off":
        return
    lock = _lock(home, service)
    if find_with_argument(str(lock)) is not None:
        return
    home.folder("deployments", service)
    words = ("-m", "flows.builder", "--service", service, "--lock", str(lock))
    spawn_detached("the builder", [sys.executable, *words], _log_file(home, service))


def builder_state(home: Home, service: str) -> dict[str, Any]:
    """Whether a builder runs beside the service's gateway, and the last line of its log."""
    lives = find_with_argument(str(_lock(home, service))) is not None
    return {"running": lives, "last_said": last_line(_log_file(home, service))}


def stop_builder(home: Home, service: str) -> None:
    """End the service's builder; what it was building waits for the next one."""
    process = find_with_argument(str(_lock(home, service)))
    if process is None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        send_signal(process, number)
        if _gone(process):
            return


def _gone(process: ProcessIdentity) -> bool:
    """Whether it ended within STOP_S."""
    pause = threading.Event()
    for _ in range(int(STOP_S / 0.1)):
        if not is_alive(process):
            return True
        pause.wait(0.1)
    return False


def watch(home: Home, service: str, asked: threading.Event) -> None:
    """Build what waits until the gateway is gone or somebody asks for the end."""
    queue = FolderQueue(home.folder("builds"), SystemClock())
    looked, gone = _Looked(home.folder("builds")), 0
    served: ProcessIdentity | None = None
    diary = Diary()
    while gone < _GATEWAY_LOOKS and not asked.is_set():
        gateway = find_gateway(home.folder("deployments", service))
        gone = 0 if gateway else gone + 1
        pause_s = LOOK_S
        try:
            due = looked.changed() and looked.waits(queue)
            if gateway is not None and gateway != served:
                # It has just read the engines beside its bundles: a build looks for lost ones.
                served, due = gateway, due or bool(queue.builds(service))
            if due:
                diary.tell(_build(asked))
                pause_s = RETRY_S if looked.waits(queue) else LOOK_S
        except ModalgateError as error:  # a full disk may have room at the next look
            diary.tell([str(error)])
        asked.wait(pause_s)


class _Looked:
    """What the queue's folder looked like: reading every request every two seconds is too much."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen_ns = -1
        self._open = True

    def changed(self) -> bool:
        now_ns = self._folder.stat().st_mtime_ns
        seen, self._seen_ns = self._seen_ns, now_ns
        return self._open or now_ns != seen

    def waits(self, queue: BuildQueue) -> bool:
        states = {build.state for build in queue.builds()}
        self._open = bool(states & {BuildState.WAITING, BuildState.BUILDING})
        return BuildState.WAITING in states


def _build(asked: threading.Event) -> list[str]:
    """One drain of the queue, in a child that is told to end when we are; what went wrong in it.

    One that does not end in time is killed: its request waits again, its own children end with it.
    """
    with subprocess.Popen(
        _BUILD, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        while not asked.is_set():
            with contextlib.suppress(subprocess.TimeoutExpired):
                answer, complaints = child.communicate(timeout=0.2)
                return said_by(child.returncode, answer, complaints)
        child.terminate()
        try:
            child.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            child.kill()
    return []


def _log_file(home: Home, service: str) -> Path:
    return home.folder("deployments") / service / "builder.log"


def _lock(home: Home, service: str) -> Path:
    return home.lock(f"builder-{service}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m flows.builder")
    parser.add_argument("--service", required=True)
    parser.add_argument("--lock", type=Path, required=True)
    options = parser.parse_args(arguments)
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, stream=sys.stderr)
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    with contextlib.suppress(OSError):  # a session of its own is weighed as one, see sched(7)
        Path("/proc/self/autogroup").write_text(str(NICENESS))
    with contextlib.suppress(Conflict), exclusive(options.lock, "the builder"):
        watch(Home.from_environment(), options.service, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
