"""The drift gate's decision rule.

A feature, a pair of modalities or a slice has drifted when three things hold at once: both windows
have enough independent samples, the permutation test of the pooled rows rejects under control over
everything that was tested, and the effect is one that matters. Control is by step-down max-T in
each family: features and pairs have three quarters of the false-alarm rate, the slices of each tag
an equal part of the rest. Too few samples decide nothing: INCONCLUSIVE. Vectors of two encoder
versions are refused: ERROR.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from validators.contracts.verdict import Finding, Verdict, conclude
from validators.drift import findings as say
from validators.drift.columns import Rows
from validators.drift.comparison import Comparison, compare
from validators.drift.dependence import Dependence, Likeness, find_dependence
from validators.drift.detectors import DEFAULT_DETECTORS, Detector
from validators.drift.findings import GATE
from validators.drift.joining import Siblings
from validators.drift.labelling import Units
from validators.drift.settings import DriftSettings
from validators.drift.subjects import Case
from validators.drift.window import FORMAT, DriftWindow, take

MAX_FINDINGS = 40
"""Drifted subjects that are named one by one, the largest effects first."""


def assess_drift(
    reference: DriftWindow | None,
    current: DriftWindow,
    settings: DriftSettings | None = None,
    *,
    champion_exists: bool = False,
    siblings: Siblings = (),
    detectors: Sequence[Detector] = DEFAULT_DETECTORS,
    effects: Mapping[str, float] | None = None,
) -> Verdict:
    """Judge `current` against `reference`.

    Without a reference the window is checked on two halves of itself and the answer is at best
    WARN ("this run becomes the reference"); where a champion exists, it is INCONCLUSIVE.
    `siblings` are pairs of engines whose vectors may be compared (see `contracts.origin`).
    `effects` of single features, measured on more rows than the windows hold, count instead of
    theirs.
    """
    rules = settings or DriftSettings()
    first: list[Finding] = []
    if reference is None:
        first.append(say.not_finished(champion_exists))
        first += _small(current, rules.minimum_samples)
        reference, current = _halves(current, rules.seed)
        rules = replace(rules, minimum_samples=max(2, rules.minimum_samples // 2))
        dependence = _independent(reference, current)
    else:
        old = [
            say.without_origin(which)
            for which, window in (("the reference", reference), ("the window", current))
            if window.format != FORMAT
        ]
        if old:
            return conclude(GATE, old, examined=1)
        limit = rules.maximum_samples
        reference, current = thinned(reference, limit)[0], thinned(current, limit)[0]
        dependence = find_dependence(reference, current)
        first += say.other_encoders(reference, current, siblings)
        first += say.new_categories(reference, current)
        first += say.dependence_findings(dependence, current, rules)
    first += say.missing(reference, current)
    compared = compare(
        Case(reference, current, dependence.units, rules, detectors, siblings, effects or {})
    )
    undecided = any(item.code == "too-few-independent" for item in first)
    later = [] if undecided else _drifted(compared, rules)
    named = {item.subject for item in first}
    later += [
        say.too_few(name, count, rules.minimum_samples)
        for name, count in compared.skipped
        if name not in named
    ]
    return conclude(
        GATE,
        first + later,
        examined=len(compared.results) + len(compared.constant) + len(compared.skipped),
        metrics=_metrics(compared, dependence),
    )


def _drifted(compared: Comparison, rules: DriftSettings) -> list[Finding]:
    fallen = [
        (item, limit)
        for item in compared.results
        if item.tested.adjusted <= item.rate
        and item.effect >= (limit := rules.limit(item.kind, item.subject))
    ]
    fallen.sort(key=lambda pair: (pair[0].slice != "", -pair[0].effect, pair[0].name))
    found = [say.drifted(item, limit) for item, limit in fallen[:MAX_FINDINGS]]
    beyond = len(fallen) - MAX_FINDINGS
    return [*found, say.more_drifted(beyond)] if beyond > 0 else found


def _metrics(compared: Comparison, dependence: Dependence) -> dict[str, float]:
    whole = [item for item in compared.results if not item.slice]
    subjects = len(whole) + len(compared.constant) + len(compared.skipped)
    metrics = {
        "features": float(subjects),
        "tested": float(len(whole)),
        "slices": float(compared.slices),
        "tested_in_slices": float(len(compared.results) - len(whole)),
        "unrelated_pairs": float(len(compared.unrelated)),
        "rows_reference": float(dependence.reference.rows),
        "rows_current": float(dependence.current.rows),
        "independent_reference": round(dependence.reference.worth, 1),
        "independent_current": round(dependence.current.worth, 1),
    }
    for item in whole:
        metrics[f"effect.{item.name}"] = item.effect
        metrics[f"p.{item.name}"] = item.tested.adjusted
    return metrics


def _small(window: DriftWindow, minimum: int) -> list[Finding]:
    sizes = {name: int(column.present.sum()) for name, column in window.descriptors.items()}
    sizes |= {f"embedding.{name}": len(column) for name, column in window.embeddings.items()}
    return [
        say.too_few(name, size, minimum) for name, size in sorted(sizes.items()) if size < minimum
    ]


def _halves(window: DriftWindow, seed: int) -> tuple[DriftWindow, DriftWindow]:
    """Two random halves, the same for the same seed.

    Chance alone is fair to every order: of samples that take turns, every other one is all alike.
    """
    order = np.random.default_rng(seed).permutation(window.rows)
    return take(window, order[::2]), take(window, order[1::2])


def _independent(reference: DriftWindow, current: DriftWindow) -> Dependence:
    """Halves drawn by chance are exchangeable row by row, whatever their rows depend on."""
    sizes = reference.rows, current.rows
    one, other = (Likeness(size, size) for size in sizes)
    return Dependence(Units.of_rows(*sizes), one, other, "none")


def thinned(window: DriftWindow, limit: int) -> tuple[DriftWindow, Rows]:
    """At most `limit` rows, spread evenly, and which ones they are."""
    rows = np.arange(window.rows)
    if window.rows > limit:
        rows = np.linspace(0, window.rows - 1, limit).astype(np.intp)
    return (window if len(rows) == window.rows else take(window, rows)), rows
