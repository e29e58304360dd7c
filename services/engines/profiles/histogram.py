"""How often each concrete shape was asked for: what profiles are planned from.

Bounded whatever comes: when more than `MAX_SHAPES` distinct shapes are held, sizes are rounded up,
to fewer and fewer significant bits, the same for every dimension (as HdrHistogram does with
values). Small sizes stay exact longest, a rounded shape always covers the true one, and since the
grids are nested the result does not depend on the order of recording or merging.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from services.engines.profiles.bounds import MAX_DIMS, MAX_SIZE
from validators.contracts.errors import BadInput

MAX_SHAPES = 2048
MAX_COUNT = 1 << 53  # counts are exact as doubles
MAX_LEVEL = 21
_FULL_BITS = 20


@dataclass(frozen=True, slots=True)
class ShapeCount:
    """`count` requests had these sizes, in the order of the histogram's dims."""

    sizes: tuple[int, ...]
    count: int


@dataclass(frozen=True, slots=True)
class ShapeHistogram:
    """Counts per concrete shape over named dimensions; a document by `canonical_json`.

    `counts` is sorted by sizes, without repeats. `level` 0 means that sizes are exact; each level
    above rounds them up to one significant bit less (from 20), then to rarer powers of two.
    """

    dims: tuple[str, ...]
    counts: tuple[ShapeCount, ...] = ()
    level: int = 0

    def __post_init__(self) -> None:
        _check_dims(self.dims)
        keys = [item.sizes for item in self.counts]
        sound = (
            0 <= self.level <= MAX_LEVEL
            and len(keys) <= MAX_SHAPES
            and keys == sorted(set(keys))
            and all(0 < item.count <= MAX_COUNT for item in self.counts)
            and all(
                len(key) == len(self.dims) and key == _rounded(_checked(key), self.level)
                for key in keys
            )
        )
        if not sound:
            raise BadInput(
                "this is no shape histogram: sizes, counts, order or number of shapes are wrong",
                where=", ".join(self.dims),
                remedy="Make it with ShapeRecorder.",
            )

    @property
    def total(self) -> int:
        return sum(item.count for item in self.counts)


class ShapeRecorder:
    """Counts shapes as they come, in bounded memory. Holds no lock: one thread at a time."""

    def __init__(self, dims: Sequence[str]) -> None:
        _check_dims(tuple(dims))
        self._dims = tuple(dims)
        self._counts: dict[tuple[int, ...], int] = {}
        self._level = 0

    def add(self, sizes: Mapping[str, int], count: int = 1) -> None:
        """Record `count` requests of these sizes; dimensions that are not recorded are ignored.

        Raises:
            BadInput: a recorded dimension is missing, or a size or count is out of bounds.
        """
        if missing := [name for name in self._dims if name not in sizes]:
            raise BadInput(
                f"a shape has no dimension {missing[0]}", remedy="Give: " + ", ".join(self._dims)
            )
        self._put(_checked(tuple(sizes[name] for name in self._dims)), count)

    def include(self, histogram: ShapeHistogram) -> None:
        """Record everything that another histogram of the same dimensions holds."""
        if histogram.dims != self._dims:
            raise BadInput(
                f"histograms of {self._dims} and {histogram.dims} do not add up",
                remedy="Merge histograms of one contract's dimensions, in one order.",
            )
        self._coarsen(histogram.level)
        for item in histogram.counts:
            self._put(item.sizes, item.count)

    def histogram(self) -> ShapeHistogram:
        """What was recorded so far, as a value."""
        counts = tuple(ShapeCount(key, count) for key, count in sorted(self._counts.items()))
        return ShapeHistogram(self._dims, counts, self._level)

    def _put(self, sizes: tuple[int, ...], count: int) -> None:
        if count < 1:
            raise BadInput(f"{count} requests cannot be recorded", remedy="Count at least 1.")
        key = _rounded(sizes, self._level)
        self._counts[key] = min(MAX_COUNT, self._counts.get(key, 0) + count)
        while len(self._counts) > MAX_SHAPES:
            self._coarsen(self._level + 1)

    def _coarsen(self, level: int) -> None:
        if level <= self._level:
            return
        held, self._counts, self._level = self._counts, {}, level
        for sizes, count in held.items():
            key = _rounded(sizes, level)
            self._counts[key] = min(MAX_COUNT, self._counts.get(key, 0) + count)


def tally(dims: Sequence[str], shapes: Iterable[Mapping[str, int]]) -> ShapeHistogram:
    """The histogram of these requests."""
    recorder = ShapeRecorder(dims)
    for sizes in shapes:
        recorder.add(sizes)
    return recorder.histogram()


def merge(first: ShapeHistogram, *others: ShapeHistogram) -> ShapeHistogram:
    """One histogram of several, in any order: `merge(a, b) == merge(b, a)`.

    Raises:
        BadInput: they are not over the same dimensions.
    """
    recorder = ShapeRecorder(first.dims)
    for histogram in (first, *others):
        recorder.include(histogram)
    return recorder.histogram()


def coarsened(histogram: ShapeHistogram, level: int) -> ShapeHistogram:
    """The histogram with sizes rounded up at least to the grid of a level.

    Raises:
        BadInput: there is no such level.
    """
    if not 0 <= level <= MAX_LEVEL:
        raise BadInput(f"there is no level {level}", remedy=f"Use 0 to {MAX_LEVEL}.")
    recorder = ShapeRecorder(histogram.dims)
    recorder.include(ShapeHistogram(histogram.dims, (), level))
    recorder.include(histogram)
    return recorder.histogram()


def round_up(size: int, level: int) -> int:
    """The least size on the level's grid that is not below `size`."""
    bits = _FULL_BITS - level
    if bits >= 1:
        step = 1 << max(0, size.bit_length() - bits)
        return -(-size // step) * step
    stride = 1 << (1 - bits)  # exponents in steps of 2, then 4
    exponent = (size - 1).bit_length()
    return 1 << (-(-exponent // stride) * stride)


def _rounded(sizes: tuple[int, ...], level: int) -> tuple[int, ...]:
    return tuple(round_up(size, level) for size in sizes)


def _checked(sizes: tuple[int, ...]) -> tuple[int, ...]:
    if any(not 1 <= size <= MAX_SIZE for size in sizes):
        raise BadInput(f"{sizes} is no shape", remedy=f"Keep sizes between 1 and {MAX_SIZE}.")
    return sizes


def _check_dims(dims: tuple[str, ...]) -> None:
    if not 1 <= len(dims) <= MAX_DIMS or len(set(dims)) != len(dims):
        raise BadInput(
            f"shapes are recorded over 1 to {MAX_DIMS} different dimensions, not {dims}",
            remedy="Name the dimensions that change, such as batch and tokens.",
        )
