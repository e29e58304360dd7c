"""How a picture is turned for display: the display matrix of ISO/IEC 14496-12 (8.3.2), applied.

A matrix that turns by other than quarter turns is not applied.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_TURNS: dict[tuple[int, int, int, int], tuple[int, bool]] = {
    # signs of (a, b, c, d) to (quarter turns counterclockwise, mirrored left to right before them)
    (1, 0, 0, 1): (0, False),
    (0, 1, -1, 0): (3, False),
    (-1, 0, 0, -1): (2, False),
    (0, -1, 1, 0): (1, False),
    (-1, 0, 0, 1): (0, True),
    (0, -1, -1, 0): (3, True),
    (1, 0, 0, -1): (2, True),
    (0, 1, 1, 0): (1, True),
}


@dataclass(frozen=True, slots=True)
class Orientation:
    """Mirrored left to right first, where it is, then turned counterclockwise."""

    quarter_turns: int = 0
    mirrored: bool = False

    @property
    def sideways(self) -> bool:
        return self.quarter_turns % 2 == 1

    def apply(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """[H, W, 3] as it is to be shown, contiguous."""
        if self.mirrored:
            pixels = pixels[:, ::-1]
        return np.ascontiguousarray(np.rot90(pixels, self.quarter_turns))


def orientation_of(matrix: bytes | None) -> Orientation | None:
    """Of 9 native-endian 32-bit integers; None where it is no quarter turn."""
    if matrix is None:
        return Orientation()
    if len(matrix) < 36:
        return None
    # Rows map (x, y, 1): [a b u] [c d v] [x y w].
    values = np.frombuffer(matrix[:36], dtype=np.int32)
    a, b, c, d = (int(np.sign(round(int(values[at]) / 65536, 3))) for at in (0, 1, 3, 4))
    turn = _TURNS.get((a, b, c, d))
    return None if turn is None else Orientation(*turn)
