"""Files of strangers are decoded in child processes: FFmpeg, PDFium and libsndfile are native code.

A decoder that crashes, hangs or eats memory takes one child with it, and its file is refused by
name. Children are kept for the next file; each track that is being read has one of its own, which
waits where its reader does, so that memory does not grow with the length of a recording.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from services.children.guard import Cancel
from services.children.process import revive
from services.children.scratch import scratch
from services.ingest.measures import Measures
from services.ingest.media.anomalies import Anomaly
from services.ingest.media.decoder import Decoder
from services.ingest.media.limits import Form, MediaLimits
from services.ingest.media.sources import MediaFile
from services.ingest.media.tracks import MediaTrack
from services.ingest.media.wire import (
    Order,
    State,
    TrackFacts,
    unpack,
)
from services.ingest.tracks import Item

MAX_IDLE = 4
MAX_ORDERS = 5000  # then a child is replaced, with whatever its libraries have leaked


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
        self._idle: list[Decoder] = []
        self._busy: set[Decoder] = set()
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
    def child(self) -> Iterator[Decoder]:
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

    def _start(self) -> Decoder:
        self._started += 1
        folder = self._folder / f"child-{self._started}"
        folder.mkdir()
        return Decoder(folder, self.limits, self._cancel)


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


def _after(item: Item | None) -> str:
    return "" if item is None else f", after {item.place}"
