"""Where a track's clock is moved to: piecewise an offset and a rate, in whole numbers."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

PPB = 1_000_000_000
"""Parts per billion: the unit of rate errors."""


@dataclass(frozen=True, slots=True)
class Piece:
    """From `from_ns` on (the track's own time) the track is off by `offset_ns`, growing by
    `rate_ppb` nanoseconds a second. Negative: the track lags, its times are moved back."""

    from_ns: int
    offset_ns: int
    rate_ppb: int = 0

    def offset_at(self, ts_ns: int) -> int:
        return self.offset_ns + (ts_ns - self.from_ns) * self.rate_ppb // PPB


@dataclass(frozen=True, slots=True)
class Correction:
    """Pieces in order of `from_ns`; before the first one, the first one holds."""

    pieces: tuple[Piece, ...] = ()

    def offset_at(self, ts_ns: int) -> int:
        """By how much the track is off at its own time `ts_ns`."""
        if not self.pieces:
            return 0
        return self.pieces[max(self._piece(ts_ns), 0)].offset_at(ts_ns)

    def apply(self, ts_ns: int) -> int | None:
        """The track's own time as time of the common base: what lags by 128 ms moves back by it.

        None for what fills a stall: where a track falls behind, its time goes on for a while
        without content, and the next piece begins, on the common base, where that filling began.
        """
        if not self.pieces:
            return ts_ns
        at = max(self._piece(ts_ns), 0)
        moved = ts_ns + self.pieces[at].offset_at(ts_ns)
        if at + 1 < len(self.pieces) and moved >= _begin(self.pieces[at + 1]):
            return None
        return moved

    def source_of(self, common_ns: int) -> int:
        """The track's own time of a moment of the common base; `apply`'s inverse."""
        if not self.pieces:
            return common_ns
        begun = [piece for piece in self.pieces if _begin(piece) <= common_ns]
        piece = begun[-1] if begun else self.pieces[0]
        own_ns = common_ns - piece.offset_at(common_ns)
        return common_ns - piece.offset_at(own_ns)

    def _piece(self, ts_ns: int) -> int:
        return bisect_right(self.pieces, ts_ns, key=lambda piece: piece.from_ns) - 1


def _begin(piece: Piece) -> int:
    return piece.from_ns + piece.offset_ns


NO_CORRECTION = Correction()
