"""Seeded traces of request shapes, committed beside: `python -m tests.benchmarks.shape_traces`.

`search` is a text encoder behind dynamic batching: short queries, descriptions, cut documents.
`dialogue` is a decoder with a key-value cache: prompts, and single-token steps whose caches are
longer in the second half. Both were looked at while the planner was made. `speech` is an audio
encoder whose mix of commands, sentences and long recordings comes and goes. Nothing was tuned on
it.
"""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from services.engines.profiles.bounds import DimBound
from services.engines.profiles.cost import ShapeFormula, attention_work

FOLDER = Path(__file__).parent / "traces"
REQUESTS = 4000


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests in order of arrival, what the contract allows, and what a shape costs."""

    name: str
    bounds: tuple[DimBound, ...]
    work: ShapeFormula
    shapes: tuple[dict[str, int], ...]


_BOUNDS = {
    "search": (DimBound("batch", 1, 16), DimBound("tokens", 1, 512)),
    "dialogue": (DimBound("batch", 1, 8), DimBound("tokens", 1, 256), DimBound("cache", 1, 1024)),
    "speech": (DimBound("batch", 1, 8), DimBound("frames", 1, 1500)),
}
_WORK = {
    "search": attention_work("batch", "tokens", width=384),
    "dialogue": attention_work("batch", "tokens", width=384, cache="cache"),
    "speech": attention_work("batch", "frames", width=512),
}


def read_trace(name: str) -> Trace:
    """A committed trace."""
    with (FOLDER / f"shapes-{name}.csv").open(newline="") as stream:
        rows = tuple(
            {dim: int(size) for dim, size in row.items()} for row in csv.DictReader(stream)
        )
    return Trace(name, _BOUNDS[name], _WORK[name], rows)


def make_rows(name: str) -> Iterator[tuple[int, ...]]:
    """The rows of a trace, from its seed."""
    makers = {"search": (_search, 11), "dialogue": (_dialogue, 12), "speech": (_speech, 13)}
    maker, seed = makers[name]
    return maker(random.Random(seed))


def _search(draw: random.Random) -> Iterator[tuple[int, ...]]:
    kinds = [(2.3, 0.45), (4.3, 0.5), (5.8, 0.6)]  # logarithm of tokens: mean, deviation
    for _ in range(REQUESTS):
        mean, deviation = draw.choices(kinds, [70, 25, 5])[0]
        batch = min(16, 1 + int(draw.expovariate(1 / 2.5)))
        members = [draw.lognormvariate(mean, deviation) for _ in range(batch)]
        yield batch, min(512, max(3, round(max(members))))


def _dialogue(draw: random.Random) -> Iterator[tuple[int, ...]]:
    for index in range(REQUESTS):
        longer = 0.25 if index >= REQUESTS // 2 else 0.0
        if draw.random() < 0.15:
            tokens = min(256, max(2, round(draw.lognormvariate(3.7, 0.8))))
            yield 1, tokens, min(1024, max(1, round(draw.lognormvariate(4.0, 1.2) - 20)))
        else:
            batch = draw.choices(range(1, 9), [20, 15, 12, 10, 8, 7, 6, 22])[0]
            caches = [draw.lognormvariate(5.2 + longer, 0.7) for _ in range(batch)]
            yield batch, 1, min(1024, max(2, round(max(caches))))


def _speech(draw: random.Random) -> Iterator[tuple[int, ...]]:
    kinds = [(4.2, 0.4), (5.4, 0.5), (6.6, 0.5)]
    for index in range(REQUESTS):
        tide = 0.5 + 0.5 * math.sin(index / 300)
        mean, deviation = draw.choices(kinds, [50, 20 + 40 * tide, 2 + 8 * tide])[0]
        batch = draw.choices(range(1, 9), [30, 20, 14, 10, 8, 6, 4, 8])[0]
        frames = max(draw.lognormvariate(mean, deviation) for _ in range(batch))
        yield batch, min(1500, max(10, round(frames)))


def main() -> None:
    for name, bounds in _BOUNDS.items():
        with (FOLDER / f"shapes-{name}.csv").open("w", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow([bound.name for bound in bounds])
            writer.writerows(make_rows(name))


if __name__ == "__main__":
    main()
