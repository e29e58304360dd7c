"""How much of a medium is read, and in which form."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1024**3
HOUR_MS = 3_600_000.0


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """Bounds of one file. What goes beyond them is TooLarge, never cut in silence.

    `frame_pixels` holds for what a stream declares and for what its decoder finds;
    `page_pixels` for a rendered page, which is made smaller to fit.
    """

    file_bytes: int = 8 * GIB
    duration_ms: float = 6 * HOUR_MS
    frames: int = 1_000_000
    frame_pixels: int = 8192 * 4320
    audio_channels: int = 16
    pages: int = 500
    page_pixels: int = 6_000_000
    page_side_points: float = 14_400.0  # what PDF readers agree on (ISO 32000-1, annex C)
    document_bytes: int = 512 * 1024**2
    blocks_per_page: int = 2_000
    lines: int = 20_000_000
    line_bytes: int = 64 * 1024
    channels: int = 256
    decoder_threads: int = 1
    stall_s: float = 120.0  # of a decoder that gives nothing, where it runs in a child
    decode_s: float = 4 * 3600.0  # of waiting for one track, where it runs in a child
    memory_bytes: int = 2 * GIB  # of a decoder's child


@dataclass(frozen=True, slots=True)
class Form:
    """What the items of a track are to be.

    Attributes:
        shrink_to_px: the longest side of a frame, where it is longer; None keeps every pixel.
        audio: "mfcc" (13 coefficients, 100 a second) or "samples" (16 kHz mono, 100 ms a block).
        page_times_ms: when each page was shown; pages beyond it, and all without it, are at the
            last time given, or 0.
        ocr: "auto" recognises pages that have no text layer, "always" every page, "never" none.
        modality: the name of the track; "" takes that of its kind.
    """

    shrink_to_px: int | None = None
    audio: str = "mfcc"
    page_times_ms: tuple[float, ...] = ()
    ocr: str = "auto"
    modality: str = ""
