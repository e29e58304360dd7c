"""A bounded sample of live requests, as vectors and measures: what drift is judged by.

A request is offered once it is answered. By chance alone it is kept or not; of one that is kept, a
thread of low priority takes the measures, and the media are let go of. What stays of it are the
encoders' outputs, its measures, the slices it belongs to, and which rows came in one session: never
media, text, ids, or when it came. Neither the offer nor the thread can make a request fail or wait.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from services.gateway.branches import BranchResult
from services.gateway.live_window import LiveRow, LiveVector, make_window, vector_of
from services.gateway.measuring import measure_medium
from services.gateway.requests import Call, Medium, MultimodalRequest
from services.gateway.reservoir import Reservoir
from services.gateway.revision import LoadedRevision
from validators.contracts.digest import Digest
from validators.contracts.errors import ModalgateError
from validators.contracts.origin import VectorOrigin
from validators.contracts.ports import Clock
from validators.drift.window import DriftWindow

MIN_ROWS, MAX_ROWS = 32, 512
"""A window is handed out once it has so many rows, and keeps at most so many."""

MAX_AGE_S = 3600.0
"""Fewer rows are handed out after this time."""

MAX_PENDING, MAX_PENDING_BYTES = 64, 64 * 1024 * 1024
MAX_UNWRITTEN = 8
_LOWEST_PRIORITY = 19

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LiveWindow:
    """A window that one bundle's requests gave."""

    bundle: Digest
    window: DriftWindow


@dataclass(slots=True)
class _Gathering:
    """The window of one bundle that is being filled; its vectors have one origin a modality."""

    bundle: Digest
    rows: Reservoir[LiveRow]
    from_ms: int
    started_ns: int
    origins: dict[str, VectorOrigin] = field(default_factory=dict)
    sessions: dict[str, int] = field(default_factory=dict)
    unmeasured: int = 0


@dataclass(frozen=True, slots=True)
class _Offered:
    """What waits to be measured."""

    gathering: _Gathering
    place: int
    media: Mapping[str, Medium]
    row: LiveRow  # without its measures yet

    @property
    def size_bytes(self) -> int:
        return sum(medium.size_bytes for medium in self.media.values())


class Recorder:
    """Records the requests of one gateway. `offer` is called on its event loop."""

    def __init__(
        self,
        clock: Clock,
        count: Callable[[str], None] = lambda outcome: None,
        *,
        max_rows: int = MAX_ROWS,
        seed: int | None = None,
    ) -> None:
        """`count` hears of each request what became of it: kept, passed, dropped, unmeasured."""
        self._clock, self._count, self._max_rows = clock, count, max_rows
        self._chance = random.Random(seed)  # noqa: S311 - a sample, no secret
        self._lock = threading.Lock()
        self._open: dict[Digest, _Gathering] = {}
        self._closed: list[_Gathering] = []  # takes no more, and may still be measured
        self._full: list[LiveWindow] = []
        self._pending: queue.Queue[_Offered | None] = queue.Queue(MAX_PENDING)
        self._pending_bytes = 0
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    def offer(
        self,
        revision: LoadedRevision,
        call: Call,
        request: MultimodalRequest,
        results: Mapping[str, BranchResult],
    ) -> None:
        """One answered request, unless it is the platform's own. Never raises, never waits."""
        plan = revision.recording
        if call.probe or not plan.share or self._chance.random() >= plan.share:
            return
        try:
            self._offer(revision, call, request, results)
        except Exception as error:  # the request has its answer, whatever becomes of the record
            _log.error("a request was not recorded: %s", type(error).__name__)
            self._count("unmeasured")

    def _offer(
        self,
        revision: LoadedRevision,
        call: Call,
        request: MultimodalRequest,
        results: Mapping[str, BranchResult],
    ) -> None:
        vectors = {
            name: vector_of(revision, name, result)
            for name, result in results.items()
            if result.features is not None
        }
        with self._lock:
            gathering = self._gathering(revision.digest, vectors)
            place = gathering.rows.offer()
            if place is None:
                self._count("passed")
                return
            gathering.unmeasured += 1
            session = call.session_id
            numbers = gathering.sessions
            number = None if session is None else numbers.setdefault(session, len(numbers))
        media = {name: items[0] for name, items in request.media if items}
        tags = revision.recording.slices_of(dict(request.metadata))
        row = LiveRow({}, frozenset(media), vectors, tags, number)
        if not self._queue(_Offered(gathering, place, media, row)):
            self._withdraw(gathering)
            self._count("dropped")

    def take(self, *, everything: bool = False) -> list[LiveWindow]:
        """The windows that are full or old enough, or whatever there is; each once."""
        with self._lock:
            for bundle, gathering in list(self._open.items()):
                age_s = (self._clock.monotonic_ns() - gathering.started_ns) / 1e9
                if everything or len(gathering.rows) >= MIN_ROWS or age_s >= MAX_AGE_S:
                    self._closed.append(self._open.pop(bundle))
            for gathering in [g for g in self._closed if everything or not g.unmeasured]:
                self._closed.remove(gathering)
                self._hand_out(gathering)
            taken, self._full = self._full, []
            return taken

    def give_back(self, window: LiveWindow) -> None:
        """A window that could not be written: it is handed out again, unless too many wait."""
        with self._lock:
            self._keep(window)

    def settle(self) -> None:
        """Returns once everything that was offered until now is measured."""
        self._pending.join()

    def close(self) -> None:
        """End the thread; what is pending is measured first."""
        self._pending.put(None)
        self._thread.join()

    def _gathering(self, bundle: Digest, vectors: Mapping[str, LiveVector]) -> _Gathering:
        """The open window of a bundle: another engine's vectors begin a new one."""
        gathering = self._open.get(bundle)
        origins = {name: vector.origin for name, vector in vectors.items()}
        if gathering is not None and any(
            gathering.origins.get(name, origin) != origin for name, origin in origins.items()
        ):
            self._closed.append(self._open.pop(bundle))
            gathering = None
        if gathering is None:
            gathering = self._open[bundle] = _Gathering(
                bundle, Reservoir(self._max_rows, self._chance), self._now_ms(),
                self._clock.monotonic_ns(),
            )  # fmt: skip
        gathering.origins.update(origins)
        return gathering

    def _hand_out(self, gathering: _Gathering) -> None:
        rows = gathering.rows.rows()
        if rows:
            # wall clocks may go back between the two
            until_ms = max(self._now_ms(), gathering.from_ms)
            seen = max(gathering.rows.seen, len(rows))
            window = make_window(rows, seen, gathering.from_ms, until_ms)
            self._keep(LiveWindow(gathering.bundle, window))

    def _keep(self, window: LiveWindow) -> None:
        self._full.append(window)
        if len(self._full) > MAX_UNWRITTEN:
            del self._full[0]
            self._count("unwritten")

    def _queue(self, offered: _Offered) -> bool:
        with self._lock:
            if self._pending_bytes + offered.size_bytes > MAX_PENDING_BYTES:
                return False
            self._pending_bytes += offered.size_bytes
        try:
            self._pending.put_nowait(offered)
        except queue.Full:
            with self._lock:
                self._pending_bytes -= offered.size_bytes
            return False
        return True

    def _work(self) -> None:
        with contextlib.suppress(OSError):  # of this thread alone, see sched(7)
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
        while (offered := self._pending.get()) is not None:
            self._count("kept" if self._measure(offered) else "unmeasured")
            with self._lock:
                self._pending_bytes -= offered.size_bytes
            self._pending.task_done()
        self._pending.task_done()

    def _measure(self, offered: _Offered) -> bool:
        measures: dict[str, float] = {}
        try:
            for name, medium in offered.media.items():
                for measure, value in measure_medium(name, medium):
                    measures[f"{name}.{measure}"] = value
        except ModalgateError as error:
            _log.warning("a request was not measured: %s", error.what)
        except Exception as error:  # the thread serves all requests: none may end it
            _log.error("a request was not measured: %s", type(error).__name__)
        else:
            row = replace(offered.row, measures=measures)
            with self._lock:
                offered.gathering.rows.put(offered.place, row)
                offered.gathering.unmeasured -= 1
            return True
        self._withdraw(offered.gathering)
        return False

    def _withdraw(self, gathering: _Gathering) -> None:
        with self._lock:
            gathering.rows.withdraw()
            gathering.unmeasured -= 1

    def _now_ms(self) -> int:
        return self._clock.wall_ns() // 1_000_000
