"""How often drift alarms where nothing changed, and how often where something did.

Windows are drawn anew for every case, so that each is independent. A detector alone is judged at
the gate's rate with no floor under its effect; the gate is judged as it is, floors and all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from tests.benchmarks.drift_shifts import (
    EMBEDDING_SHIFTS,
    TABLE_SHIFTS,
    Table,
    embedding_window,
    null_window,
    pair_window,
)
from tests.benchmarks.result import Machine, Options, Result
from validators.compatibility.estimates import wilson_bounds
from validators.contracts.verdict import Outcome, Verdict
from validators.drift.detectors import DEFAULT_DETECTORS, Detector, EnergyDistance
from validators.drift.gate import assess_drift
from validators.drift.settings import DriftSettings, Kind

WORKERS = 2
NULL_WINDOWS, NULL_ROWS = 2000, 100
CASES, EMBEDDING_ROWS, TABLE_ROWS = 40, 300, 200
PAIR_CASES, PAIR_ROWS = 40, 500
GATE = DriftSettings()
BARE = replace(
    GATE, scalar_effect=0.0, category_effect=0.0, absence_effect=0.0, vector_effect=0.0,
    pair_effect=0.0,
)  # fmt: skip
CLASSIFIER, EVIDENTLY, OURS = "classifier", "evidently", "gate"
ALONE: tuple[Detector, ...] = (*DEFAULT_DETECTORS, EnergyDistance())


def run(options: Options) -> Result:
    del options
    machine = Machine.now()
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        false_alarms = list(_false_alarms(pool))
        embeddings, tables, pairs = list(_embeddings(pool)), list(_tables(pool)), list(_pairs(pool))
    tuned = [row for row in embeddings if "nothing was tuned" not in row["data"]]
    joint = [row for row in pairs if row["shift"] == "20 % of pairs swapped"]
    rate = false_alarms[0]["alarms"] / false_alarms[0]["windows"]
    ratios: dict[str, float | None] = {
        "false_alarm_rate": rate,
        "false_alarm_upper_bound": wilson_bounds(rate, false_alarms[0]["windows"])[1],
        "false_alarm_rate_without_effect_limits": (
            false_alarms[1]["alarms"] / false_alarms[1]["windows"]
        ),
        "power_ours": _mean([*tuned, *tables], OURS),
        "power_evidently_default": _mean([*tuned, *tables], EVIDENTLY),
        "power_ours_embeddings": _mean(tuned, OURS),
        "power_evidently_default_embeddings": _mean(tuned, EVIDENTLY),
        "power_joint_20pct_swapped_n500": min(row[OURS] for row in joint),
    }
    notes = (
        f"false alarms: {NULL_WINDOWS} windows of {NULL_ROWS} rows with 8 scalars, a category, two "
        f"embeddings in pairs and two tags; power: {CASES} windows a row, at the gate's rate of "
        f"{GATE.false_alarm_rate}",
        "evidently is its default decision: half of the columns for tables, its model method for "
        "embeddings; any_column is one column at p < 0.05",
    )
    return Result(
        "drift-power", machine, (*false_alarms, *embeddings, *tables, *pairs), ratios, notes
    )


def _false_alarms(pool: ProcessPoolExecutor) -> Iterator[dict[str, Any]]:
    found = list(pool.map(_null_case, range(NULL_WINDOWS), chunksize=25))
    for name, place in (("gate as it is", 0), ("without effect limits", 1)):
        alarms = sum(case[place] for case in found)
        low, high = wilson_bounds(alarms / NULL_WINDOWS, NULL_WINDOWS)
        yield {
            "data": "nothing changed", "shift": name, "windows": NULL_WINDOWS, "alarms": alarms,
            "interval_95": f"{low:.4f} to {high:.4f}",
        }  # fmt: skip


def _null_case(seed: int) -> tuple[bool, bool]:
    """Whether the gate alarms, and whether it would without its effect limits."""
    generator = np.random.default_rng([seed, 1])
    reference, current = (null_window(generator, NULL_ROWS) for _ in range(2))
    verdict = assess_drift(reference, current, BARE)
    drifted = [item for item in verdict.findings if item.code == "drifted"]
    matters = [item for item in drifted if float(item.measured) >= _limit(item.subject)]
    return bool(matters), bool(drifted)


def _limit(subject: str) -> float:
    """The gate's limit for a subject, whose findings here were made without one."""
    feature = subject.rpartition("/")[2]
    kinds = {"embedding": Kind.VECTORS, "pairs": Kind.PAIRS, "absence": Kind.ABSENCE,
             "tag": Kind.CATEGORY, "label": Kind.CATEGORY}  # fmt: skip
    return GATE.limit(kinds.get(feature.partition(".")[0], Kind.SCALAR), feature)


def _embeddings(pool: ProcessPoolExecutor) -> Iterator[dict[str, Any]]:
    for data, (_, shifts) in EMBEDDING_SHIFTS.items():
        for shift in ("none", *shifts):
            judged = pool.map(partial(_embedding_case, data, shift), range(CASES), chunksize=5)
            yield _row(data, shift, list(judged))


def _embedding_case(data: str, shift: str, seed: int) -> dict[str, bool]:
    from tests.benchmarks import drift_peers as peers

    plain, shifts = EMBEDDING_SHIFTS[data]
    generator = np.random.default_rng([seed, 2])
    reference = embedding_window(plain, generator, EMBEDDING_ROWS)
    current = embedding_window(shifts.get(shift, plain), generator, EMBEDDING_ROWS)
    found = {
        detector.name: _failed(assess_drift(reference, current, BARE, detectors=(detector,)))
        for detector in ALONE
    }
    before, now = (np.asarray(w.embeddings["image"].vectors, float) for w in (reference, current))
    found[CLASSIFIER] = peers.classifier_p_value(before, now, seed) <= GATE.false_alarm_rate
    found[OURS] = _failed(assess_drift(reference, current, GATE))
    found[EVIDENTLY] = peers.evidently_embedding_drifted(reference, current)
    return found


def _tables(pool: ProcessPoolExecutor) -> Iterator[dict[str, Any]]:
    for shift in ("none", *TABLE_SHIFTS):
        judged = pool.map(partial(_table_case, shift), range(CASES), chunksize=10)
        yield _row("table", shift, list(judged))


def _table_case(shift: str, seed: int) -> dict[str, bool]:
    from tests.benchmarks import drift_peers as peers

    generator = np.random.default_rng([seed, 3])
    reference = Table()(generator, TABLE_ROWS)
    current = TABLE_SHIFTS.get(shift, Table())(generator, TABLE_ROWS)
    drifted = peers.evidently_columns_drifted(reference, current)
    columns = len(reference.descriptors) + len(reference.categories)
    return {
        OURS: _failed(assess_drift(reference, current, GATE)),
        EVIDENTLY: drifted >= columns / 2,
        "any_column": drifted > 0,
    }


def _pairs(pool: ProcessPoolExecutor) -> Iterator[dict[str, Any]]:
    for shared in (True, False):
        for swapped in (0.0, 0.05, 0.1, 0.2):
            judged = pool.map(partial(_pair_case, shared, swapped), range(PAIR_CASES), chunksize=5)
            data = "pairs in one space" if shared else "pairs in two spaces"
            shift = f"{swapped:.0%} of pairs swapped".replace("%", " %") if swapped else "none"
            yield _row(data, shift, list(judged))


def _pair_case(shared: bool, swapped: float, seed: int) -> dict[str, bool]:
    generator = np.random.default_rng([seed, 4])
    reference = pair_window(generator, PAIR_ROWS, 0.0, shared=shared)
    current = pair_window(generator, PAIR_ROWS, swapped, shared=shared)
    return {OURS: _failed(assess_drift(reference, current, GATE), "pairs.")}


def _mean(rows: Sequence[Mapping[str, Any]], who: str) -> float:
    """Mean power over the rows in which something was shifted."""
    return float(np.mean([row[who] for row in rows if row["shift"] != "none"]))


def _failed(verdict: Verdict, prefix: str = "") -> bool:
    return any(
        item.outcome is Outcome.FAIL and item.subject.startswith(prefix)
        for item in verdict.findings
    )


def _row(data: str, shift: str, cases: Sequence[Mapping[str, bool]]) -> dict[str, Any]:
    shares = {name: float(np.mean([case[name] for case in cases])) for name in cases[0]}
    low, high = wilson_bounds(shares[OURS], len(cases))
    interval = f"{low:.2f} to {high:.2f}"
    return {"data": data, "shift": shift, "windows": len(cases), **shares, "interval_95": interval}
