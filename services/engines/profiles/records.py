"""The recorded shapes of one encoder, as a document: windows of time, the oldest first.

Serving appends a window now and then; the release plans profiles from them. A state folder keeps it
at `shapes/<service>/<encoder>.json`.
"""

from __future__ import annotations

from dataclasses import dataclass

from services.engines.profiles.histogram import ShapeHistogram
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import BadInput, Refused

MAX_WINDOWS = 24
"""Older windows are dropped: traffic of long ago says little of what is to come."""

RECORDING_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ShapeRecording:
    """The document: windows over one contract's dimensions, none of them empty."""

    format: int
    windows: tuple[ShapeHistogram, ...] = ()

    def __post_init__(self) -> None:
        sound = (
            self.format == RECORDING_FORMAT
            and len(self.windows) <= MAX_WINDOWS
            and len({window.dims for window in self.windows}) <= 1
            and all(window.total for window in self.windows)
        )
        if not sound:
            raise BadInput(
                "this is no recording of shapes: its format, number or dimensions of windows are "
                "wrong",
                remedy="Make it with append_window.",
            )


def append_window(recording: bytes | None, window: ShapeHistogram) -> bytes:
    """The recording with one more window; an empty window adds nothing.

    Windows of other dimensions belong to another contract, and what cannot be read is of no use to
    anybody: the recording begins again.
    """
    windows: list[ShapeHistogram] = []
    if recording is not None:
        try:
            windows = read_windows(recording)
        except Refused:
            windows = []
    if window.total:
        windows = [item for item in windows if item.dims == window.dims] + [window]
    return canonical_json(ShapeRecording(RECORDING_FORMAT, tuple(windows[-MAX_WINDOWS:])))


def read_windows(recording: bytes, *, where: str = "") -> list[ShapeHistogram]:
    """The windows of a recording, the oldest first.

    Raises:
        Refused: it is damaged, or of another format.
    """
    try:
        return list(load(ShapeRecording, recording, where=where).windows)
    except BadInput as error:
        raise Refused(
            error.what, where=where, remedy="Delete it: serving records shapes anew."
        ) from error
