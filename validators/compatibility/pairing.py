"""`judge_pair`: may one version of an encoder work beside one version of another?

The judge sees figures of executed tensors and nothing else: no version, no name, no configuration.
Names are attached afterwards (`matrix`), so that a verdict cannot follow them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from validators.compatibility.measured import CompatibilityWord
from validators.compatibility.paired import (
    PairMeasurement,
    PairRetrieval,
    PairRun,
    upper_loss,
    upper_rate,
)
from validators.contracts.engine import Precision
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude

GATE = "compatibility"
PAIR = "pair"
"""The subject of every finding until names are attached."""


@dataclass(frozen=True, slots=True)
class PairSettings:
    """What a pair may do.

    `served` are the precisions that will run; a fault in another one is a warning. `most_broken` is
    what the upper bound of the rate of broken requests has to stay under: 299 requests without one
    show 1 % (the rule of three). `most_lost` is the share of queries that a pair may lose against
    the live one, by the upper bound of a paired difference. `least_headroom` and `most_flushed`
    warn of a pair that is finite by a narrow margin.
    """

    served: frozenset[Precision] | None = None  # None: all that were run
    most_broken: float = 0.01
    most_lost: float = 0.1
    least_headroom: float = 4.0
    most_flushed: float = 0.01


@dataclass(frozen=True, slots=True)
class Judgement:
    """`word` is None where there is too little to tell, or the run failed."""

    word: CompatibilityWord | None
    verdict: Verdict


def judge_pair(measured: PairMeasurement, settings: PairSettings | None = None) -> Judgement:
    """The word and the verdict of a pair, from its figures alone. Pure."""
    rules = settings or PairSettings()
    if measured.crashed:
        finding = Finding(
            GATE, "pair-not-run", PAIR, Outcome.ERROR, measured.crashed, "an answer",
            "Look at how the child process ended; run the pair again.", waivable=False,
        )  # fmt: skip
        return Judgement(None, conclude(GATE, [finding], examined=1))
    findings = [finding for run in measured.runs for finding in _judge_run(run, rules)]
    word: CompatibilityWord | None = CompatibilityWord.COMPATIBLE
    if measured.retrieval is not None:
        word, found = _judge_retrieval(measured.retrieval, rules)
        findings += found
    examined = sum(run.requests for run in measured.runs if run.computed is run.precision)
    examined += measured.retrieval.queries if measured.retrieval else 0
    verdict = conclude(GATE, findings, examined=examined, metrics=_metrics(measured))
    if any(finding.outcome is Outcome.FAIL and not finding.waivable for finding in findings):
        word = CompatibilityWord.BLOCK
    elif verdict.outcome in (Outcome.INCONCLUSIVE, Outcome.ERROR):
        word = None
    return Judgement(word, verdict)


def _judge_run(run: PairRun, rules: PairSettings) -> Iterator[Finding]:
    subject = f"{PAIR} in {run.precision.value}"
    served = rules.served is None or run.precision in rules.served
    if run.computed is not run.precision:
        yield Finding(
            GATE, "not-computed-there", subject, Outcome.INCONCLUSIVE if served else Outcome.WARN,
            run.computed_in, run.precision.value,
            f"Run the pair where {run.precision.value} is really computed.",
        )  # fmt: skip
        return
    if run.broken:
        first = f", first in {run.first_broken}" if run.first_broken else ""
        alone = run.broken_first or run.broken_second
        yield Finding(
            GATE, "broken-alone" if alone else "broken-together", subject,
            Outcome.FAIL if served else Outcome.WARN,
            f"{_counted(run)} answered NaN or infinity{first}; alone {run.broken_first} and "
            f"{run.broken_second}",
            "0 requests", "Take another version of one of the two, or another precision.",
            waivable=not served,
        )  # fmt: skip
    elif (bound := upper_rate(0, run.requests)) > rules.most_broken:
        yield Finding(
            GATE, "too-few-requests", subject, Outcome.INCONCLUSIVE if served else Outcome.WARN,
            f"none of {run.requests} broke, so up to {bound:.2%} may", f"{rules.most_broken:.2%}",
            f"Give the pair {_needed(rules.most_broken)} requests at least.",
        )  # fmt: skip
    yield from _margins(run, subject, rules)


def _margins(run: PairRun, subject: str, rules: PairSettings) -> Iterator[Finding]:
    if run.peak > 0 and run.headroom < rules.least_headroom:
        yield Finding(
            GATE, "little-headroom", subject, Outcome.WARN, run.headroom, rules.least_headroom,
            "Rescale what is largest, or take a precision with more range.",
        )  # fmt: skip
    if run.flushed_share > rules.most_flushed:
        yield Finding(
            GATE, "underflow", subject, Outcome.WARN, run.flushed_share, rules.most_flushed,
            "Rescale what is smallest: these values are zero in this precision alone.",
        )  # fmt: skip


def _judge_retrieval(
    seen: PairRetrieval, rules: PairSettings
) -> tuple[CompatibilityWord | None, list[Finding]]:
    if seen.unusable:
        return CompatibilityWord.BLOCK, [_retrieval_finding(
            "unusable-vectors", Outcome.FAIL, f"{seen.unusable} items", "none",
            "Check the checkpoint and its preprocessing.", waivable=False,
        )]  # fmt: skip
    if seen.is_reference:
        return CompatibilityWord.COMPATIBLE, []
    loss = upper_loss(seen.lost, seen.gained, seen.queries)
    refitted = upper_loss(seen.refitted_lost, seen.refitted_gained, seen.queries)
    described = (
        f"{seen.hits} of {seen.queries} found, the live pair finds {seen.reference_hits}, through "
        f"a map fitted again {seen.refitted_hits}; chance {seen.chance * seen.queries:.1f}"
    )
    limit = f"at most {rules.most_lost:.0%} of queries lost"
    if upper_loss(0, 0, seen.queries) > rules.most_lost:
        return None, [_retrieval_finding(
            "too-few-queries", Outcome.INCONCLUSIVE, described, limit,
            "Give the pair more captioned items.",
        )]  # fmt: skip
    if loss <= rules.most_lost:
        return CompatibilityWord.COMPATIBLE, []
    if refitted <= rules.most_lost:
        return CompatibilityWord.ADAPTER, [_retrieval_finding(
            "adapter-needed", Outcome.WARN, described, limit,
            "Fit the map into the common space again, on this pair.",
        )]  # fmt: skip
    return CompatibilityWord.REINDEX, [_retrieval_finding(
        "reindex", Outcome.FAIL, described, limit,
        "Fit the map again, encode every stored vector with this version, and judge its recall by "
        "itself.",
    )]  # fmt: skip


def _retrieval_finding(
    code: str, outcome: Outcome, measured: str, limit: str, remedy: str, *, waivable: bool = True
) -> Finding:
    return Finding(GATE, code, PAIR, outcome, measured, limit, remedy, waivable=waivable)


def _counted(run: PairRun) -> str:
    rate = run.rate
    return (
        f"{run.broken} of {run.requests} requests ({rate.value:.1%}, 95 % interval "
        f"{rate.low:.1%} to {rate.high:.1%})"
    )


def _needed(most: float) -> int:
    needed = 1
    while upper_rate(0, needed) > most:
        needed += 1
    return needed


def _metrics(measured: PairMeasurement) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for run in measured.runs:
        name = run.precision.value
        metrics[f"{name}_requests"] = float(run.requests)
        metrics[f"{name}_broken_share"] = run.rate.value
        metrics[f"{name}_broken_upper_bound"] = upper_rate(run.broken, run.requests)
        metrics[f"{name}_headroom"] = run.headroom
        metrics[f"{name}_flushed_share"] = run.flushed_share
        if run.cosine_min is not None:
            metrics[f"{name}_cosine_min"] = run.cosine_min
    if measured.retrieval is not None:
        seen = measured.retrieval
        metrics[f"recall_at_{seen.k}"] = seen.hits / max(seen.queries, 1)
        metrics[f"recall_at_{seen.k}_refitted"] = seen.refitted_hits / max(seen.queries, 1)
        metrics[f"recall_at_{seen.k}_live"] = seen.reference_hits / max(seen.queries, 1)
    return metrics
