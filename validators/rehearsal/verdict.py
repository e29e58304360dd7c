"""`assess_rehearsal`: latency, errors, memory and consistency against the SLO."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import mannwhitneyu

from validators.contracts.slo import CLASS_BOUNDS, Slo
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude
from validators.rehearsal.bounds import (
    minimum_for_upper_bound,
    quantile_lower,
    quantile_of,
    quantile_upper,
    share_bounds,
)

GATE = "rehearsal"
COARSE_QUANTILE = 0.95  # what fewer requests can bound: 59 of them
SEPARATION_P_VALUE = 0.05
MEMORY_WARNING_SHARE = 0.9
MINIMUM_PAIRS = 5


@dataclass(frozen=True, slots=True)
class PairScores:
    """Alignment scores (cosine, -1..1) of pairs that belong together, and of shuffled ones."""

    matched: tuple[float, ...]
    shuffled: tuple[float, ...]


def assess_rehearsal(
    latencies_ms: Sequence[float],
    errors: int,
    peak_memory_mb: float | None,
    slo: Slo,
    *,
    consistency: PairScores | None = None,
) -> Verdict:
    """Judge a replay against the objective.

    A quantile passes where its distribution-free upper bound (95 %) keeps the limit, fails where
    its lower bound exceeds it, and is INCONCLUSIVE between. With fewer requests than an upper bound
    takes (299 for P99) it is WARN if at least P95 is bounded (59), else INCONCLUSIVE.

    Args:
        latencies_ms: end to end, of the requests that were answered.
        errors: how many requests were not.
        peak_memory_mb: of the serving process; None where it could not be measured.
        slo: the objective.
        consistency: scores of pairs; None where there were none.
    """
    total = len(latencies_ms) + errors
    findings = [
        *_latency(latencies_ms, slo),
        *_errors(errors, total, slo),
        *_memory(peak_memory_mb, slo),
        *_consistency(consistency, slo),
    ]
    metrics = {
        "requests": float(total),
        "errors": float(errors),
        **_latency_metrics(latencies_ms, slo),
        **_score_metrics(consistency),
    }
    if total:
        metrics["error_rate_upper"] = share_bounds(errors, total)[1]
    if peak_memory_mb is not None and math.isfinite(peak_memory_mb):
        metrics["peak_memory_mb"] = peak_memory_mb
    return conclude(GATE, findings, examined=total, metrics=metrics)


def _latency(latencies_ms: Sequence[float], slo: Slo) -> list[Finding]:
    if not latencies_ms:
        return []
    if not all(math.isfinite(value) and value >= 0 for value in latencies_ms):
        remedy = "Measure again: a latency is a finite number of milliseconds."
        return [_finding("latency-unreadable", Outcome.ERROR, "not a number", slo.p99_ms, remedy)]
    quantile = CLASS_BOUNDS[slo.slo_class].percentile
    label = f"p{quantile * 100:g}"
    lower = quantile_lower(latencies_ms, quantile)
    upper = quantile_upper(latencies_ms, quantile)
    if lower is not None and lower > slo.p99_ms:
        remedy = "Choose a faster precision or backend, or shorten the pipeline."
        return [_finding(f"{label}-over-limit", Outcome.FAIL, lower, slo.p99_ms, remedy)]
    if upper is None:
        return [_too_few(latencies_ms, slo, quantile)]
    if upper > slo.p99_ms:
        remedy = "Send more requests: the bound of these is on both sides of the limit."
        return [_finding(f"{label}-unsure", Outcome.INCONCLUSIVE, upper, slo.p99_ms, remedy)]
    return _soft(upper, slo, label)


def _too_few(latencies_ms: Sequence[float], slo: Slo, quantile: float) -> Finding:
    minimum = minimum_for_upper_bound(quantile)
    coarse = quantile_upper(latencies_ms, COARSE_QUANTILE)
    bounded = coarse is not None and coarse <= slo.p99_ms
    # An observed breach is not explained away by a coarser bound.
    quiet = quantile_of(latencies_ms, quantile) <= slo.p99_ms
    return _finding(
        "too-few-requests",
        Outcome.WARN if bounded and quiet else Outcome.INCONCLUSIVE,
        len(latencies_ms),
        minimum,
        f"Replay {minimum} requests at least to bound P{quantile * 100:g}.",
    )


def _soft(upper: float, slo: Slo, label: str) -> list[Finding]:
    if slo.soft_limit_ms >= slo.p99_ms or upper <= slo.soft_limit_ms:
        return []
    remedy = "Watch it: there is little room left below the limit."
    return [_finding(f"{label}-over-soft-limit", Outcome.WARN, upper, slo.soft_limit_ms, remedy)]


def _errors(errors: int, total: int, slo: Slo) -> list[Finding]:
    if not total:
        return []
    share = errors / total
    lower, upper = share_bounds(errors, total)
    if lower > slo.error_rate:
        remedy = "Read the errors of the replay and remove their cause."
        return [_finding("error-rate", Outcome.FAIL, share, slo.error_rate, remedy)]
    if share > slo.error_rate:
        remedy = "Send more requests: these cannot tell whether the rate is within the limit."
        return [_finding("error-rate-unsure", Outcome.INCONCLUSIVE, share, slo.error_rate, remedy)]
    if upper > slo.error_rate > 0:
        minimum = minimum_for_upper_bound(1 - slo.error_rate)
        remedy = f"Replay {minimum} requests at least to bound the error rate by its limit."
        return [_finding("error-rate-unbounded", Outcome.WARN, upper, slo.error_rate, remedy)]
    return []


def _memory(peak_memory_mb: float | None, slo: Slo) -> list[Finding]:
    limit = slo.peak_memory_mb
    if peak_memory_mb is None or not math.isfinite(peak_memory_mb):
        remedy = "Run the replay where the peak memory of the process can be read."
        return [_finding("memory-unmeasured", Outcome.INCONCLUSIVE, "unmeasured", limit, remedy)]
    if peak_memory_mb > limit:
        remedy = "Use a smaller precision, fewer engines or smaller batches."
        return [_finding("memory-over-limit", Outcome.FAIL, peak_memory_mb, limit, remedy)]
    if peak_memory_mb > MEMORY_WARNING_SHARE * limit:
        remedy = "Watch it: there is little room left below the limit."
        return [_finding("memory-near-limit", Outcome.WARN, peak_memory_mb, limit, remedy)]
    return []


def _consistency(scores: PairScores | None, slo: Slo) -> list[Finding]:
    """Matched pairs have to reach the limit, and to score above shuffled ones."""
    if slo.consistency <= 0:
        return []
    if scores is None or min(len(scores.matched), len(scores.shuffled)) < MINIMUM_PAIRS:
        seen = 0 if scores is None else len(scores.matched)
        remedy = f"Give the rehearsal {MINIMUM_PAIRS} pairs at least, or set consistency to 0."
        return [
            _finding("consistency-unmeasured", Outcome.INCONCLUSIVE, seen, MINIMUM_PAIRS, remedy)
        ]
    if not all(math.isfinite(score) for score in (*scores.matched, *scores.shuffled)):
        remedy = "Find the branch whose embedding is not finite."
        return [_finding("consistency-unreadable", Outcome.ERROR, "NaN", slo.consistency, remedy)]
    return [*_alignment(scores, slo), *_separation(scores)]


def _alignment(scores: PairScores, slo: Slo) -> list[Finding]:
    mean = sum(scores.matched) / len(scores.matched)
    if mean >= slo.consistency:
        return []
    remedy = "Learn the adapters on more pairs, or lower slo.consistency with a reason."
    return [_finding("consistency-low", Outcome.FAIL, mean, slo.consistency, remedy)]


def _separation(scores: PairScores) -> list[Finding]:
    p_value = _separation_p_value(scores)
    if p_value <= SEPARATION_P_VALUE:
        return []
    remedy = "The modalities do not agree better than by chance: learn the adapters again."
    return [_finding("pairs-not-separated", Outcome.FAIL, p_value, SEPARATION_P_VALUE, remedy)]


def _separation_p_value(scores: PairScores) -> float:
    """Mann-Whitney, one-sided: are matched pairs scored higher than shuffled ones?"""
    result = mannwhitneyu(scores.matched, scores.shuffled, alternative="greater")
    return float(result.pvalue)


def _latency_metrics(latencies_ms: Sequence[float], slo: Slo) -> dict[str, float]:
    latencies = [value for value in latencies_ms if math.isfinite(value)]
    if not latencies:
        return {}
    quantile = CLASS_BOUNDS[slo.slo_class].percentile
    metrics = {f"p{share * 100:g}_ms": quantile_of(latencies, share) for share in (0.5, 0.95, 0.99)}
    upper = quantile_upper(latencies, quantile)
    return metrics if upper is None else metrics | {f"p{quantile * 100:g}_upper_ms": upper}


def _score_metrics(scores: PairScores | None) -> dict[str, float]:
    if scores is None or not scores.matched or not scores.shuffled:
        return {}
    figures = {
        "matched_score_mean": sum(scores.matched) / len(scores.matched),
        "shuffled_score_mean": sum(scores.shuffled) / len(scores.shuffled),
    }
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def _finding(
    code: str, outcome: Outcome, measured: float | str, limit: float, remedy: str
) -> Finding:
    return Finding(GATE, code, "service", outcome, measured, limit, remedy)
