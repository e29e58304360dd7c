"""Task: decode one file after another, each from an open descriptor, until the caller hangs up."""

from __future__ import annotations

import ctypes
import os
import resource
import socket

import msgspec

from services.children.phases import Phases
from services.children.report import ErrorDocument
from services.ingest.media.opening import open_tracks
from services.ingest.media.sources import MediaFile
from services.ingest.media.tracks import MediaTrack
from services.ingest.media.wire import (
    MAX_ORDER_BYTES,
    DecodeRequest,
    Head,
    Order,
    State,
    TrackFacts,
    batches,
    pack_message,
)
from validators.contracts.errors import BadInput, ModalgateError

REQUEST = DecodeRequest

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # mallopt(3)
_LARGE_BYTES = 1024**2


def run(request: DecodeRequest, phases: Phases) -> None:
    """Each order is answered with heads, the last of them `done` or with an error."""
    # A decoder that crashes must not leave raw media behind in a core file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with socket.socket(fileno=request.orders) as orders:
        while (received := _receive(orders)) is not None:
            order, descriptor = received
            with MediaFile(descriptor, order.name, order.size_bytes) as file:
                _answer(request.answers, order, file)


def _receive(orders: socket.socket) -> tuple[Order, int] | None:
    data, descriptors, _, _ = socket.recv_fds(orders, MAX_ORDER_BYTES, 1)
    if not data:
        return None
    return msgspec.json.decode(data, type=Order), descriptors[0]


def _answer(pipe: int, order: Order, file: MediaFile) -> None:
    state: _Told | None = None
    if order.kind == "document":
        _return_large_blocks()
    try:
        tracks = open_tracks(file, order.kind, order.limits, order.form)
        if order.track is None:
            facts = tuple(TrackFacts(t.modality, t.period_ms, t.feature_dims) for t in tracks)
            _send(pipe, Head(tracks=facts, done=True))
            return
        if not 0 <= order.track < len(tracks):
            raise BadInput("the file has no such track", where=file.name)
        track = tracks[order.track]
        state = _Told(track)
        for batch, values in batches(iter(track.items())):
            for piece in pack_message(Head(batch=batch, state=state.news()), values):
                _write(pipe, piece)
        _send(pipe, Head(state=state.news(), done=True))
    except ModalgateError as error:
        document = ErrorDocument(type(error).__name__, error.what, error.where, error.remedy)
        _send(pipe, Head(state=state.news() if state else None, done=True), document)


class _Told:
    """What the caller knows of a track already."""

    def __init__(self, track: MediaTrack) -> None:
        self._track = track
        self._anomalies = 0

    def news(self) -> State:
        track = self._track
        fresh = track.anomalies[self._anomalies :]
        self._anomalies += len(fresh)
        return State(fresh, track.anomaly_counts, track.measures)


def _send(pipe: int, head: Head, error: ErrorDocument | None = None) -> None:
    for piece in pack_message(head, None, error):
        _write(pipe, piece)


def _write(pipe: int, data: memoryview) -> None:
    while data:
        data = data[os.write(pipe, data) :]


def _return_large_blocks() -> None:
    """Let glibc give large blocks back as they are freed.

    Recognising text takes and frees hundreds of megabytes in blocks of many sizes: with the usual
    thresholds, which grow, 500 MB stay at the peak; with these 340 MB, at 1.25 times the time.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other libraries have none
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)
