"""What running two encoders together has shown, and the bounds of its rates. No judgement in it."""

from __future__ import annotations

from dataclasses import dataclass

from validators.compatibility.estimates import Estimate, share_of, wilson_bounds
from validators.contracts.engine import Precision


@dataclass(frozen=True, slots=True)
class PairRun:
    """A pair on the same requests in one precision.

    Attributes:
        computed: the precision that the arithmetic was really done in; None where this machine
            hides it, so that the run says nothing of that precision.
        computed_in: what did it, for people: "torch half, CPU".
        broken: requests with NaN or infinity in an output of the pair.
        broken_first, broken_second: requests on which that encoder alone gives one.
        peak: largest finite absolute value of any step.
        headroom: the precision's largest finite number over the peak.
        flushed_share: of the values of one step that are not zero in fp32, the share that are
            zero here; of the worst step.
        cosine_min: the least cosine of an answer with that in fp32, over requests finite in both.
        first_broken: the first layer that gives NaN or infinity, by its own name.
    """

    precision: Precision
    computed: Precision | None
    computed_in: str
    requests: int
    broken: int
    broken_first: int = 0
    broken_second: int = 0
    peak: float = 0.0
    headroom: float = 0.0
    flushed_share: float = 0.0
    cosine_min: float | None = None
    first_broken: str = ""

    @property
    def rate(self) -> Estimate:
        return share_of(self.broken, self.requests)


@dataclass(frozen=True, slots=True)
class PairRetrieval:
    """Two encoders that meet in one space: items of the first are found by queries of the second.

    `hits` of `queries` have a match among the `k` nearest through the map that serves now,
    `reference_hits` with the live pair, `refitted_hits` through a map fitted again on other items.
    `lost` are queries that the live pair answers and this one does not, `gained` the reverse;
    `refitted_*` likewise. `unusable` items gave NaN, infinity or the same vector as all others.
    `is_reference`: this is the live pair itself.
    """

    k: int
    queries: int
    chance: float
    reference_hits: int
    hits: int
    lost: int
    gained: int
    refitted_hits: int
    refitted_lost: int
    refitted_gained: int
    unusable: int = 0
    is_reference: bool = False

    @property
    def recall(self) -> Estimate:
        return share_of(self.hits, self.queries)


@dataclass(frozen=True, slots=True)
class PairMeasurement:
    """What running a pair has shown. `row` and `column` are opaque; the judge does not read them.

    `crashed` says how a child process ended that gave no answer.
    """

    row: str
    column: str
    runs: tuple[PairRun, ...] = ()
    retrieval: PairRetrieval | None = None
    crashed: str = ""
    duration_ms: float = 0.0
    peak_bytes: int = 0


def upper_rate(broken: int, requests: int) -> float:
    """The one-sided 95 % upper bound of a rate; exact where nothing broke (1 - 0.05 ** (1 / n))."""
    if requests == 0:
        return 1.0
    if broken == 0:
        return float(1 - 0.05 ** (1 / requests))
    return wilson_bounds(broken / requests, requests)[1]


def upper_loss(lost: int, gained: int, queries: int) -> float:
    """The upper bound of the share of queries lost, net of those gained, on the same queries.

    Each of the two shares is bounded by Wilson's interval and the errors are added: wider than
    needed (Newcombe, Statistics in Medicine 17, 1998, subtracts part of it).
    """
    if queries == 0:
        return 1.0
    net = (lost - gained) / queries
    _, high = wilson_bounds(lost / queries, queries)
    low, _ = wilson_bounds(gained / queries, queries)
    return min(1.0, net + (high - lost / queries) + (gained / queries - low))
