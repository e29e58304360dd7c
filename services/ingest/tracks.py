"""Timed media as streams: what a decoder yields and what the time base is made from.

A track is read once, front to back, and holds one item at a time in memory. Its times are its own
clock's, in milliseconds from the moment that its source calls zero; `timebase` says what they are
on the common one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

Value = npt.NDArray[Any] | str | Mapping[str, float]
"""A frame [H, W, 3] uint8, a feature vector [D] float32, a text, or named sensor readings."""


@dataclass(frozen=True, slots=True)
class Item:
    """What a track holds at one moment. `index` counts from 0 in the order of presentation.

    `duration_ms` is 0 for what happens at a moment; `place` says where in its source it was: a page
    with a box, a line, a frame number.
    """

    index: int
    ts_ms: float
    value: Value
    duration_ms: float = 0.0
    place: str = ""


class Track(Protocol):
    """One medium of a recording, decoded as it is read."""

    @property
    def modality(self) -> str: ...

    @property
    def period_ms(self) -> float | None:
        """Nominal time between items; None for what comes when it comes."""
        ...

    @property
    def feature_dims(self) -> tuple[int, ...]:
        """The shape of an item's value; () for texts."""
        ...

    def items(self) -> Iterator[Item]:
        """In order of time, once.

        Raises:
            BadInput, TooLarge, Unsupported: the source is damaged, beyond its bounds, or of a kind
                that is not read; items yielded before are good.
        """
        ...
