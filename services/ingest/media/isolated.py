"""Files of strangers are decoded in child processes: FFmpeg, PDFium and libsndfile are native code.

A decoder that crashes, hangs or eats memory takes one child with it, and its file is refused by
name. Children are kept for the next file; each track that is being read has one of its own, which
waits where its reader does, so that memory does not grow with the length of a recording.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from services.children.errors import ChildCrashed, ChildTimedOut, ChildTooLarge
from services.children.guard import POLL_S, Cancel, Limits
from services.children.process import StartedChild, revive, start_child
from services.children.scratch import scratch
from services.ingest.measures import Measures
from services.ingest.media.anomalies import Anomaly
from services.ingest.media.limits import Form, MediaLimits
from services.ingest.media.sources import MediaFile
from services.ingest.media.tracks import MediaTrack
from services.ingest.media.wire import (
    DECODE_MEDIA,
    DecodeRequest,
    Message,
    Order,
    State,
    TrackFacts,
    receive_message,
    unpack,
)
from services.ingest.tracks import Item
from validators.contracts.errors import BadInput, ModalgateError, Refused, TooLarge, Unavailable

START_S = 300.0
MAX_IDLE = 4
MAX_ORDERS = 5000  # then a child is replaced, with whatever its libraries have leaked

_PIPE_BYTES = 1024**2
_LAST_WORDS_S = 5.0
_LOOK_EVERY_S = 0.25
_FAULTS = frozenset(
    (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGTRAP)
)


class Decoders:
    """Opens tracks whose bytes are decoded elsewhere. For one thread: its children die with it.

    `folder` is for their scratch. What `open_tracks` returns is read while this is open.
    """

    def __init__(
        self, folder: Path, limits: MediaLimits | None = None, *, cancel: Cancel | None = None
    ) -> None:
        self.limits = limits or MediaLimits()
        self._cancel = cancel
        self._stack = contextlib.ExitStack()
        self._folder = self._stack.enter_context(scratch(folder))
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._started = 0

    def open_tracks(
        self, file: MediaFile, kind: str, form: Form | None = None
    ) -> tuple[MediaTrack, ...]:
        """As `opening.open_tracks`; a decoder that crashes or hangs makes the file a BadInput.

        Raises:
            Unsupported, TooLarge, BadInput: as there.
            BuildCancelled: `cancel` said so.
        """
        order = Order(file.name, file.size_bytes, kind, self.limits, form or Form())
        with self.child() as child:
            message = child.ask(order, file, "")
            if message.error is not None:
                raise revive(message.error)
        return tuple(
            IsolatedTrack(self, file, replace(order, track=at), facts)
            for at, facts in enumerate(message.head.tracks or ())
        )

    def close(self) -> None:
        """Ends every child, also those whose track is still being read."""
        for child in (*self._idle, *self._busy):
            child.end()
        self._idle.clear()
        self._busy.clear()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def child(self) -> Iterator[_Child]:
        """A child for one order; kept afterwards where it answered to the end, ended otherwise."""
        child = self._idle.pop() if self._idle else self._start()
        self._busy.add(child)
        try:
            yield child
        finally:
            self._busy.discard(child)
            if child.ready and child.orders < MAX_ORDERS and len(self._idle) < MAX_IDLE:
                self._idle.append(child)
            else:
                child.end()

    def _start(self) -> _Child:
        self._started += 1
        folder = self._folder / f"child-{self._started}"
        folder.mkdir()
        return _Child(folder, self.limits, self._cancel)


class IsolatedTrack:
    """A `MediaTrack` whose items come from a child."""

    def __init__(
        self, decoders: Decoders, file: MediaFile, order: Order, facts: TrackFacts
    ) -> None:
        self._decoders = decoders
        self._file = file
        self._order = order
        self._facts = facts
        self._anomalies: tuple[Anomaly, ...] = ()
        self._state = State()

    @property
    def modality(self) -> str:
        return self._facts.modality

    @property
    def period_ms(self) -> float | None:
        return self._facts.period_ms

    @property
    def feature_dims(self) -> tuple[int, ...]:
        return self._facts.feature_dims

    @property
    def anomalies(self) -> tuple[Anomaly, ...]:
        return self._anomalies

    @property
    def anomaly_counts(self) -> tuple[tuple[str, int], ...]:
        return self._state.counts

    @property
    def measures(self) -> Measures:
        return self._state.measures

    def items(self) -> Iterator[Item]:
        """As the track's own, once. A reader that stops early ends the child."""
        last: Item | None = None
        with self._decoders.child() as child:
            message = child.ask(self._order, self._file, "")
            while True:
                self._learn(message.head.state)
                with child.trusted(_after(last)):
                    items = list(unpack(message, last, self.feature_dims))
                yield from items
                last = items[-1] if items else last
                if message.error is not None:
                    raise revive(message.error)
                if message.head.done:
                    return
                message = child.hear(_after(last))

    def _learn(self, state: State | None) -> None:
        if state is not None:
            self._state = state
            self._anomalies += state.anomalies


class _Child:
    """One decoder. `ready` for an order when it has answered the last one to its end."""

    def __init__(self, folder: Path, limits: MediaLimits, cancel: Cancel | None) -> None:
        self.ready = True
        self.orders = 0
        self._limits = limits
        self._looked = 0.0
        self._waited_s = 0.0
        self._name = ""
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._answers, answers_out = os.pipe()
        nobody = os.open(os.devnull, os.O_WRONLY)  # listens to the names of phases
        bounds = Limits(timeout_s=limits.stall_s, memory_bytes=limits.memory_bytes)
        try:
            self._started: StartedChild = start_child(
                DECODE_MEDIA, DecodeRequest(theirs.fileno(), answers_out), folder,
                subject="a file", phases=nobody, limits=bounds, cancel=cancel,
                pass_fds=(theirs.fileno(), answers_out),
            )  # fmt: skip
        except BaseException:
            self._orders.close()
            os.close(self._answers)
            raise
        finally:
            theirs.close()
            os.close(answers_out)
            os.close(nobody)
        os.set_blocking(self._answers, False)
        self._poll = select.poll()  # select(2) ends at the 1024th descriptor
        self._poll.register(self._answers, select.POLLIN)
        with contextlib.suppress(OSError):  # a user may hold too many; smaller pipes are slower
            fcntl.fcntl(self._answers, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    @property
    def pid(self) -> int:
        return self._started.guard.process.pid

    def ask(self, order: Order, file: MediaFile, after: str) -> Message:
        """The first message that answers an order."""
        self.ready = False
        self.orders += 1
        self._name = order.name
        self._waited_s = 0.0
        with contextlib.suppress(BrokenPipeError):  # it is dead: hearing it says how
            socket.send_fds(self._orders, [msgspec.json.encode(order)], [file.descriptor])
        return self.hear(after)

    def hear(self, after: str) -> Message:
        """The next message. `after` says which item was the last good one, for errors.

        Raises: BadInput, TooLarge, where the decoder could not stand the file.
        """
        if self._answers < 0:
            raise Unavailable("the decoders have been closed", where=self._name)
        # The first answer waits for the libraries to be loaded.
        self._started.guard.allow(self._limits.stall_s + (START_S if self.orders == 1 else 0))
        with self.trusted(after):
            message = receive_message(self._fill)
        self._look()
        self.ready = message.head.done
        return message

    @contextlib.contextmanager
    def trusted(self, after: str) -> Iterator[None]:
        """What shows inside that the child is not to be trusted any more ends it, explained."""
        where = f"{self._name}{after}"
        try:
            yield
        except EOFError:
            raise self._death(where) from None
        except ChildTimedOut as error:
            raise self._refuse("its decoder makes no progress; it was stopped", where) from error
        except ChildTooLarge as error:
            raise TooLarge(
                f"its decoder takes more than {self._limits.memory_bytes >> 20} MiB of memory",
                where=where, remedy="Give a smaller file, or raise the limit.",
            ) from error  # fmt: skip
        except Refused as error:
            raise self._refuse("its decoder answers what is no answer", where) from error

    def end(self) -> None:
        """Nothing of it survives this."""
        self.ready = False
        if self._answers >= 0:  # once: its number may be another process's later
            self._started.guard.end()
            self._orders.close()
            os.close(self._answers)
            self._answers = -1

    def _fill(self, buffer: memoryview) -> None:
        while buffer:
            self._wait()
            count = os.readv(self._answers, [buffer])
            if not count:
                raise EOFError
            buffer = buffer[count:]

    def _wait(self) -> None:
        started = time.perf_counter()
        while not self._poll.poll(POLL_S * 1000):
            self._looked = time.perf_counter()
            self._started.guard.check()
            if self._waited_s + self._looked - started > self._limits.decode_s:
                raise ChildTimedOut("the decoder has been waited for too long")
        self._waited_s += time.perf_counter() - started

    def _look(self) -> None:
        """A child that answers quickly is looked at now and then as well."""
        now = time.perf_counter()
        if now - self._looked > _LOOK_EVERY_S:
            self._looked = now
            with self.trusted(""):
                self._started.guard.check()

    def _death(self, where: str) -> ModalgateError:
        guard = self._started.guard
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.process.wait(_LAST_WORDS_S)
        self.end()
        code = guard.process.returncode
        if code < 0 and -code in _FAULTS:
            return self._refuse(f"its decoder crashed ({signal.Signals(-code).name})", where)
        try:
            self._started.result()
        except ModalgateError as error:
            return error
        return ChildCrashed("the decoder left without an answer", where=where)

    def _refuse(self, what: str, where: str) -> BadInput:
        return BadInput(
            what, where=where, remedy="Export the file again with an ordinary program."
        )  # fmt: skip


def _after(item: Item | None) -> str:
    return "" if item is None else f", after {item.place}"
