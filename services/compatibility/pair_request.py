"""What the child that runs a pair is asked, and what it answers: figures, and no version's name."""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts.engine import Precision

RUN_PAIR = "services.compatibility.tasks.run_pair"


@dataclass(frozen=True, slots=True)
class Part:
    """A torch factory (`package.module:factory`) and the inputs it takes, by name, in order."""

    factory: str
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Run one encoder alone, or two joined, over cases, in each precision.

    `join` names a module class or function that takes the modules and gives one that takes the
    inputs of all parts, in order. The first `traced` cases are followed step by step. `base` is
    where relative imports start, `feeds` a file of cases.
    """

    parts: tuple[Part, ...]
    join: str | None
    base: str
    feeds: str
    precisions: tuple[Precision, ...]
    traced: int = 4


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One precision over all cases. The fields are those of `PairRun`."""

    precision: Precision
    computed: Precision | None
    computed_in: str
    requests: int
    broken: int
    peak: float
    headroom: float
    flushed_share: float
    cosine_min: float | None
    first_broken: str


@dataclass(frozen=True, slots=True)
class RunAnswer:
    figures: tuple[RunFigures, ...]
