"""Messages that a receiver has not had yet, in a folder: one is lost to no crash and no outage.

    <sink>/<told_ms>-<id>.json    waits; goes when the sink took it
    <sink>/dead/<...>.json        given up: refused, or waiting longer than MAX_AGE_S

Messages of one sink go out in their order, and one that cannot be sent holds up those behind it: an
end never overtakes its alarm. Between what a sink took and its removal a crash sends it once more,
under the same id. Whoever uses a folder holds a lock over it.
"""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from infra.files import disk_faults, make_private_folder, write_atomically
from validators.contracts.alerts import Alert, AlertSink
from validators.contracts.digest import canonical_json, hex_of
from validators.contracts.documents import load
from validators.contracts.errors import BadInput, ModalgateError, Refused, Unavailable
from validators.contracts.ports import Clock

FIRST_DELAY_S, LONGEST_DELAY_S = 5.0, 3600.0
MAX_AGE_S = 7 * 24 * 3600.0
MAX_WAITING = 1000
MAX_DEAD = 100
DEAD = "dead"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message on its way. `tries` were in vain so far; the next one is due at `due_ms`."""

    alert: Alert
    tries: int
    due_ms: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one round came to, for one sink."""

    sink: str
    sent: int = 0
    waiting: int = 0
    given_up: int = 0
    problem: str = ""


class Outbox:
    """The outbox of one service."""

    def __init__(self, folder: Path, clock: Clock, *, seed: int | None = None) -> None:
        self._folder = folder
        self._clock = clock
        self._jitter = random.Random(seed)  # noqa: S311 - spreads retries, hides nothing

    def put(self, alert: Alert, sinks: Sequence[str]) -> None:
        """Keep a message for each sink; one that waits there already is kept once.

        Raises:
            Unavailable: no room on the disk; nothing partial stays.
        """
        document = canonical_json(Outgoing(alert, 0, 0))
        for sink in sinks:
            with self._faults():
                folder = self._folder / sink
                make_private_folder(folder)
                path = folder / f"{alert.told_ms:014d}-{hex_of(alert.id)[:32]}.json"
                if not path.exists():
                    write_atomically(path, document)
                self._bound(folder, MAX_WAITING)

    def deliver(self, sinks: Sequence[AlertSink]) -> list[Delivered]:
        """Send what is due; what a sink does not take now waits for a later round."""
        return [self._deliver(sink) for sink in sinks]

    def waiting(self, sink: str) -> int:
        return len(self._files(self._folder / sink))

    def _deliver(self, sink: AlertSink) -> Delivered:
        sent = given_up = 0
        problem = ""
        for path in self._files(self._folder / sink.name):
            item = self._read(path)
            now_ms = self._clock.wall_ns() // 1_000_000
            if item is None or now_ms - item.alert.told_ms > MAX_AGE_S * 1e3:
                given_up += self._bury(path, item, "damaged" if item is None else "too old")
                continue
            if not _due(item, now_ms):
                problem = item.problem
                break
            try:
                sink.deliver(item.alert)
            except (Refused, BadInput) as error:
                given_up += self._bury(path, item, error.what)
                problem = error.what
            except Unavailable as error:
                problem = error.what
                self._postpone(path, item, now_ms, problem)
                break
            else:
                with self._faults():
                    path.unlink(missing_ok=True)
                sent += 1
        return Delivered(sink.name, sent, self.waiting(sink.name), given_up, problem)

    def _postpone(self, path: Path, item: Outgoing, now_ms: int, problem: str) -> None:
        """Doubles the delay, and spreads it: receivers that come back are not all met at once."""
        delay_s = min(FIRST_DELAY_S * 2**item.tries, LONGEST_DELAY_S)
        due_ms = now_ms + int(delay_s * self._jitter.uniform(0.5, 1.0) * 1e3)
        later = replace(item, tries=min(item.tries + 1, 30), due_ms=due_ms, problem=problem[:200])
        with contextlib.suppress(ModalgateError), self._faults():  # tried again all the sooner
            write_atomically(path, canonical_json(later))

    def _bury(self, path: Path, item: Outgoing | None, why: str) -> int:
        name = item.alert.name if item else path.name
        _log.error("an alert %s is given up for %s: %s", name, path.parent.name, why)
        dead = path.parent / DEAD
        with self._faults():
            make_private_folder(dead)
            path.replace(dead / path.name)
            self._bound(dead, MAX_DEAD)
        return 1

    def _read(self, path: Path) -> Outgoing | None:
        try:
            return load(Outgoing, path.read_bytes(), where=path.name)
        except (ModalgateError, OSError):
            return None

    @staticmethod
    def _files(folder: Path) -> list[Path]:
        return sorted(path for path in folder.glob("*.json") if path.is_file())

    def _bound(self, folder: Path, limit: int) -> None:
        for path in self._files(folder)[:-limit]:
            _log.error("too many alerts wait for %s: the oldest is dropped", folder.name)
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        with disk_faults("the outbox of alerts", str(self._folder), "Make room on the disk."):
            yield


def _due(item: Outgoing, now_ms: int) -> bool:
    """A clock that went back does not hold a message up for longer than the longest delay."""
    return item.due_ms <= now_ms or item.due_ms - now_ms > LONGEST_DELAY_S * 1e3
