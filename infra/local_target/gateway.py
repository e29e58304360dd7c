"""The gateway process of one service: found, started, waited for, stopped.

Every launch has a number, and its state file's path names it. A caller that is killed right after
it started a gateway leaves a record without a pid; the process is then found by that path among
its arguments.
"""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from infra.files import write_atomically
from infra.local_target.processes import (
    ProcessIdentity,
    find_with_argument,
    is_alive,
    send_signal,
    spawn_detached,
)
from infra.local_target.records import LOOPBACK, Endpoints, Ports, ProcessRecord
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import Unavailable
from validators.contracts.ports import Clock

T = TypeVar("T")

POLL_S = 0.05
ORPHAN_GRACE_S = 1.0
LOG_LINES = 5
LOG_BYTES = 8192
LOGS_KEPT = 3


@dataclass(frozen=True, slots=True)
class GatewayLaunch:
    """How a gateway is started: the command, what it trusts, and how long things may take."""

    command: tuple[str, ...]
    trusted_keys: Path
    ports: Ports
    start_timeout_s: float
    drain_timeout_s: float


def find_gateway(folder: Path) -> ProcessIdentity | None:
    """The running gateway of a service's folder, by what the system says of its process."""
    record = _read_record(folder)
    if record is None:
        return None
    if record.process is not None:
        return record.process if is_alive(record.process) else None
    return find_with_argument(str(_state_file(folder, record.launch)))


class GatewayProcess:
    """One service's gateway. The caller holds the service's lock while it changes anything."""

    def __init__(
        self,
        folder: Path,
        service: str,
        launch: GatewayLaunch,
        clock: Clock,
        sleep: Callable[[float], None],
    ) -> None:
        self._folder = folder
        self._service = service
        self._launch = launch
        self._clock = clock
        self._sleep = sleep

    @property
    def token(self) -> str:
        return (self._folder / "token").read_text().strip()

    @property
    def engines(self) -> Path:
        """The folder of the engines that replace those of bundles; see `overlay`."""
        return self._folder / "engines"

    def find(self) -> ProcessIdentity | None:
        """The running gateway, also one whose starter died before it wrote down the pid."""
        return find_gateway(self._folder)

    def adopt(self) -> ProcessIdentity | None:
        """As `find`, and the pid of an orphan is written down."""
        record = self._record()
        if record is None or record.process is not None:
            return self.find()
        found = self._poll(self.find, ORPHAN_GRACE_S)
        if found is not None:
            self._write(replace(record, process=found))
        return found

    def endpoints(self) -> Endpoints | None:
        """Where the latest launch listens, or None while it does not yet."""
        record = self._record()
        if record is None:
            return None
        try:
            data = self._state_file(record.launch).read_bytes()
            return msgspec.json.decode(data, type=Endpoints)
        except (OSError, msgspec.MsgspecError):
            return None

    def ensure(self) -> Endpoints:
        """The endpoints of a running gateway, started where there is none.

        Raises:
            Unavailable: it does not come up; with the last lines of its log.
        """
        process = self.adopt() or self._start()
        return self._await_endpoints(process)

    def stop(self) -> None:
        """SIGTERM, wait for the drain, then SIGKILL; to this one process only."""
        process = self.adopt()
        if process is None:
            return
        send_signal(process, signal.SIGTERM)
        if not self._await_exit(process, self._launch.drain_timeout_s):
            send_signal(process, signal.SIGKILL)
            self._await_exit(process, self._launch.drain_timeout_s)

    def failure(self, what: str) -> Unavailable:
        """The error for a gateway that did not do `what`, with the reason from its log."""
        lines = self.log_tail()
        reason = f": {' | '.join(lines)}" if lines else ""
        return Unavailable(
            f"the gateway of {self._service} {what}{reason}",
            where=str(self.log_file or self._folder),
            remedy="Read the log named here, remove the cause and run the command again.",
        )

    @property
    def log_file(self) -> Path | None:
        record = self._record()
        return None if record is None else self._folder / f"gateway-{record.launch}.log"

    def log_tail(self) -> tuple[str, ...]:
        """The last lines of the latest launch's log, without the token."""
        path = self.log_file
        if path is None or not path.exists():
            return ()
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - LOG_BYTES))
            text = stream.read().decode(errors="replace").replace(self.token, "[token]")
        lines = [line.strip()[:300] for line in text.splitlines() if line.strip()]
        return tuple(lines[-LOG_LINES:])

    def _start(self) -> ProcessIdentity:
        record = self._next_record()
        write_atomically(self._folder / "token", secrets.token_urlsafe(32).encode())
        self._write(record)
        self._remove_old(record.launch)
        log = self._folder / f"gateway-{record.launch}.log"
        process = spawn_detached("the gateway program", self._command(record), log)
        self._write(replace(record, process=process))
        return process

    def _command(self, record: ProcessRecord) -> Sequence[str]:
        return [
            *self._launch.command,
            *("--service", self._service),
            *("--rest-port", str(record.ports.rest)),
            *("--grpc-port", str(record.ports.grpc)),
            *("--admin-port", "0"),
            *("--state-file", str(self._state_file(record.launch))),
            *("--token-file", str(self._folder / "token")),
            *("--trusted-keys", str(self._launch.trusted_keys)),
            *("--engines", str(self.engines)),
        ]

    def _next_record(self) -> ProcessRecord:
        """A restart asks for the ports that clients know, where free; a declared one regardless."""
        before, known = self._record(), self.endpoints()
        launch = 1 if before is None else before.launch + 1
        ports = self._launch.ports
        if known is not None:
            ports = Ports(
                ports.rest or _free_or_any(known.ports.rest),
                ports.grpc or _free_or_any(known.ports.grpc),
            )
        return ProcessRecord(launch, None, ports)

    def _await_endpoints(self, process: ProcessIdentity) -> Endpoints:
        def look() -> Endpoints | bool:
            return self.endpoints() or not is_alive(process)

        found = self._poll(look, self._launch.start_timeout_s)
        if isinstance(found, Endpoints):
            return found
        if found:
            raise self.failure("ended while it was starting")
        send_signal(process, signal.SIGKILL)
        self._await_exit(process, self._launch.drain_timeout_s)
        raise self.failure(f"did not listen within {self._launch.start_timeout_s:g} s")

    def _await_exit(self, process: ProcessIdentity, timeout_s: float) -> bool:
        return bool(self._poll(lambda: not is_alive(process), timeout_s))

    def _poll(self, look: Callable[[], T], timeout_s: float) -> T:
        """What `look` says as soon as it is true, or at the end of the time."""
        deadline_ns = self._clock.monotonic_ns() + int(timeout_s * 1e9)
        while True:
            found = look()
            if found or self._clock.monotonic_ns() >= deadline_ns:
                return found
            self._sleep(POLL_S)

    def _record(self) -> ProcessRecord | None:
        return _read_record(self._folder)

    def _write(self, record: ProcessRecord) -> None:
        write_atomically(self._folder / "process.json", canonical_json(record))

    def _state_file(self, launch: int) -> Path:
        return _state_file(self._folder, launch)

    def _remove_old(self, launch: int) -> None:
        for number in range(max(1, launch - 2 * LOGS_KEPT), launch - LOGS_KEPT + 1):
            for suffix in ("json", "log"):
                with contextlib.suppress(FileNotFoundError):
                    (self._folder / f"gateway-{number}.{suffix}").unlink()


def _read_record(folder: Path) -> ProcessRecord | None:
    path = folder / "process.json"
    try:
        return load(ProcessRecord, path.read_bytes(), where=str(path))
    except FileNotFoundError:
        return None


def _state_file(folder: Path, launch: int) -> Path:
    return folder / f"gateway-{launch}.json"


def _free_or_any(port: int) -> int:
    """The port where it can be bound, else 0."""
    if port == 0:
        return 0
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return 0
    return port
