"""How large the frames of a video are, and how they lie: what its first frame says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from av.buffer import Buffer
from av.sidedata.sidedata import Type
from av.video.frame import VideoFrame

from services.ingest.media.orientation import Orientation


@dataclass(frozen=True, slots=True)
class Picture:
    """The stored size, how it is turned, the size that is given out."""

    stored_px: tuple[int, int]  # width, height
    orientation: Orientation
    scaled_px: tuple[int, int]  # width, height, before turning

    @property
    def shape(self) -> tuple[int, int, int]:
        width, height = self.scaled_px
        return (width, height, 3) if self.orientation.sideways else (height, width, 3)


def shrunk(size: tuple[int, int], longest: int | None) -> tuple[int, int]:
    """Width and height whose longer side is at most `longest`, in the same proportion."""
    if longest is None or max(size) <= longest:
        return size
    scale = longest / max(size)
    width, height = (max(1, round(side * scale)) for side in size)
    return width, height


def display_matrix(frame: VideoFrame) -> bytes | None:
    """As `orientation_of` takes it."""
    # The type stub knows motion vectors only.
    sides = cast(Mapping[Type, Buffer], frame.side_data)
    return bytes(sides[Type.DISPLAYMATRIX]) if Type.DISPLAYMATRIX in sides else None
