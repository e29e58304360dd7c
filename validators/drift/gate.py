"""The drift gate's decision rule.

A feature has drifted when three things hold at once: both windows are large enough, the pooled
permutation test rejects after control over all features (Benjamini-Yekutieli), and the effect is
one that matters. Too few samples decide nothing: INCONCLUSIVE.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from validators.contracts.verdict import Finding, Outcome, Verdict, conclude
from validators.drift.permutation import (
    TwoSample,
    compare_scalars,
    compare_vectors,
    permutations_for,
    rejected,
)
from validators.drift.window import DriftWindow, take

GATE = "drift"
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class DriftSettings:
    """`false_alarm_rate` is per window, over all its features together.

    `scalar_effect` is a Kolmogorov-Smirnov distance, `vector_effect` a distance of means in units
    of spread. Windows are thinned evenly to `maximum_samples` before testing.
    """

    false_alarm_rate: float = 0.01
    minimum_samples: int = 30
    maximum_samples: int = 1000
    scalar_effect: float = 0.15
    vector_effect: float = 0.08
    arbitrary_dependence: bool = True  # Benjamini-Yekutieli rather than -Hochberg
    seed: int = 20


@dataclass(frozen=True, slots=True)
class _Pair:
    """One feature that both windows have."""

    name: str
    reference: Array
    current: Array
    effect_limit: float

    @property
    def constant(self) -> bool:
        """One value throughout the pooled sample: nothing to test, and no share of the rate."""
        if not len(self.reference):
            return True
        first = self.reference[0]
        return bool((self.reference == first).all() and (self.current == first).all())


def assess_drift(
    reference: DriftWindow | None,
    current: DriftWindow,
    settings: DriftSettings | None = None,
    *,
    champion_exists: bool = False,
) -> Verdict:
    """Judge `current` against `reference`.

    Without a reference the window is checked on two halves of itself and the answer is at best
    WARN ("this run becomes the reference"); where a champion exists, it is INCONCLUSIVE.
    """
    rules = settings or DriftSettings()
    extra: list[Finding] = []
    minimum = rules.minimum_samples
    if reference is None:
        extra.append(_no_reference(champion_exists))
        extra += _small(current, minimum)
        reference, current = _halves(current, rules.seed)
        minimum = max(2, minimum // 2)
    extra += _missing(reference, current)
    pairs = list(_pairs(reference, current, rules))
    findings, metrics = _judge(pairs, replace(rules, minimum_samples=minimum))
    seen = {finding.subject for finding in extra}
    findings = extra + [item for item in findings if item.subject not in seen]
    return conclude(GATE, findings, examined=len(pairs), metrics=metrics)


def _judge(pairs: list[_Pair], rules: DriftSettings) -> tuple[list[Finding], dict[str, float]]:
    findings = [item for pair in pairs for item in _unusable(pair, rules)]
    unusable = {finding.subject for finding in findings}
    usable = [pair for pair in pairs if pair.name not in unusable and not pair.constant]
    results = _test(usable, rules)
    metrics: dict[str, float] = {"features": float(len(pairs)), "tested": float(len(usable))}
    fallen = rejected(
        [result.p_value for result in results],
        rules.false_alarm_rate,
        arbitrary_dependence=rules.arbitrary_dependence,
    )
    for pair, result, fell in zip(usable, results, fallen, strict=True):
        metrics[f"effect.{pair.name}"] = result.effect
        metrics[f"p.{pair.name}"] = result.p_value
        if fell and result.effect >= pair.effect_limit:
            findings.append(_drifted(pair, result))
    return findings, metrics


def _test(pairs: list[_Pair], rules: DriftSettings) -> list[TwoSample]:
    count = permutations_for(max(len(pairs), 1), rules.false_alarm_rate, rules.arbitrary_dependence)
    return [_compare(pair, count, rules) for pair in pairs]


def _compare(pair: _Pair, permutations: int, rules: DriftSettings) -> TwoSample:
    compare = compare_scalars if pair.reference.ndim == 1 else compare_vectors
    return compare(
        _thin(pair.reference, rules.maximum_samples),
        _thin(pair.current, rules.maximum_samples),
        permutations=permutations,
        seed=rules.seed + zlib.crc32(pair.name.encode()),
    )


def _pairs(reference: DriftWindow, current: DriftWindow, rules: DriftSettings) -> Iterator[_Pair]:
    for name in sorted({*reference.descriptors} & {*current.descriptors}):
        scalars = reference.descriptors[name].observed(), current.descriptors[name].observed()
        yield _Pair(name, *scalars, rules.scalar_effect)
    for name in sorted({*reference.embeddings} & {*current.embeddings}):
        vectors = reference.embeddings[name].vectors, current.embeddings[name].vectors
        yield _Pair(_embedding(name), *vectors, rules.vector_effect)


def _missing(reference: DriftWindow, current: DriftWindow) -> Iterator[Finding]:
    there = {*reference.descriptors, *map(_embedding, reference.embeddings)}
    here = {*current.descriptors, *map(_embedding, current.embeddings)}
    for name in sorted(there ^ here):
        side = "the reference" if name in here else "this window"
        yield Finding(
            GATE, "feature-missing", name, Outcome.INCONCLUSIVE, f"absent from {side}",
            "in both windows", "Measure the feature in both windows, or remove it from both.",
        )  # fmt: skip


def _embedding(modality: str) -> str:
    return f"embedding.{modality}"


def _unusable(pair: _Pair, rules: DriftSettings) -> Iterator[Finding]:
    if pair.reference.shape[1:] != pair.current.shape[1:]:
        yield Finding(
            GATE, "dimension-differs", pair.name, Outcome.ERROR, str(pair.current.shape[1:]),
            str(pair.reference.shape[1:]), "Compare embeddings of one encoder version only: "
            "measure the reference again with the current encoder.",
        )  # fmt: skip
        return
    fewest = min(len(pair.reference), len(pair.current))
    if fewest < rules.minimum_samples:
        yield _too_few(pair.name, fewest, rules.minimum_samples)


def _small(window: DriftWindow, minimum: int) -> Iterator[Finding]:
    sizes = {name: len(values) for name, values in window.descriptors.items()}
    sizes |= {_embedding(name): len(values) for name, values in window.embeddings.items()}
    for name, size in sorted(sizes.items()):
        if size < minimum:
            yield _too_few(name, size, minimum)


def _too_few(name: str, count: int, minimum: int) -> Finding:
    return Finding(
        GATE, "too-few-samples", name, Outcome.INCONCLUSIVE, float(count), float(minimum),
        "Collect more samples before judging drift, or lower gates.drift.minimum_samples.",
    )  # fmt: skip


def _drifted(pair: _Pair, result: TwoSample) -> Finding:
    return Finding(
        GATE, "drifted", pair.name, Outcome.FAIL, round(result.effect, 4), pair.effect_limit,
        f"Look at how {pair.name} changed (p = {result.p_value:.2g}); retrain, or make this data "
        "the reference if the change is meant.",
    )  # fmt: skip


def _no_reference(champion_exists: bool) -> Finding:
    if champion_exists:
        return Finding(
            GATE, "reference-lost", "reference", Outcome.INCONCLUSIVE, "none", "the champion's",
            "Restore the champion's drift window, or measure it again from its data set.",
        )  # fmt: skip
    return Finding(
        GATE, "first-release", "reference", Outcome.WARN, "none", "a reference",
        "Nothing to compare with: this run becomes the reference, checked on its two halves.",
    )  # fmt: skip


def _halves(window: DriftWindow, seed: int) -> tuple[DriftWindow, DriftWindow]:
    """Two random halves, the same for the same seed.

    Chance alone is fair to every order: of samples that take turns, every other one is all alike.
    """
    order = np.random.default_rng(seed).permutation(window.rows)
    return take(window, order[::2]), take(window, order[1::2])


def _thin(values: Array, limit: int) -> Array:
    if len(values) <= limit:
        return values
    return values[np.linspace(0, len(values) - 1, limit).astype(np.intp)]
