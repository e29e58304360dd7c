"""How long it takes to judge a large window: ours, Evidently's report, an exact MMD.

Each side is what its user calls: the gate on two windows, a computed report (which draws nothing
yet, but for Evidently's picture of an embedding, which its metric always makes: the row "method
alone" is without it), and a permuted MMD over the whole kernel matrix.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from tests.benchmarks import drift_peers as peers
from tests.benchmarks.drift_shifts import ORIGIN
from tests.benchmarks.result import Machine, Options, Result, spread
from validators.drift.columns import Embedded, Scalars
from validators.drift.gate import assess_drift
from validators.drift.settings import DriftSettings
from validators.drift.window import DriftWindow

TABLE = 100_000, 20
EMBEDDING = 10_000, 512
OURS_REPEATS = 5
EVERY_ROW = DriftSettings(maximum_samples=EMBEDDING[0])


def run(options: Options) -> Result:
    """Processor seconds, which what else runs on the machine changes least; wall time in rows."""
    machine = Machine.now()
    generator = np.random.default_rng(1)
    tables = [generator.normal(size=TABLE) for _ in range(2)]
    vectors = [generator.standard_normal(EMBEDDING, np.float32) for _ in range(2)]
    rows, peers_repeats = list[dict[str, Any]](), options.repeats
    windows = [_table(values) for values in tables]
    frames = [_frame(values, "c") for values in tables]
    tabular = _time(
        rows, "100 k × 20 rows", "gate", lambda: assess_drift(windows[0], windows[1]), OURS_REPEATS
    )
    evidently = _time(
        rows, "100 k × 20 rows", "Evidently report", lambda: peers.evidently_table(*frames),
        peers_repeats,
    )  # fmt: skip
    clouds = [_embedding(values) for values in vectors]
    frames = [_frame(values, "e") for values in vectors]
    what = "10 k × 512 vectors"
    ours = _time(rows, what, "gate", lambda: assess_drift(clouds[0], clouds[1]), OURS_REPEATS)
    whole = _time(
        rows, what, "gate, every row permuted",
        lambda: assess_drift(clouds[0], clouds[1], EVERY_ROW), 1,
    )  # fmt: skip
    report = _time(
        rows, what, "Evidently report", lambda: peers.evidently_embedding(*frames), peers_repeats
    )
    method = _time(
        rows, what, "Evidently, method alone",
        lambda: peers.evidently_embedding_method(*frames), peers_repeats,
    )  # fmt: skip
    exact = _time(
        rows, what, "exact MMD, 100 permutations",
        lambda: peers.exact_mmd(vectors[0], vectors[1], 1), peers_repeats,
    )  # fmt: skip
    ratios: dict[str, float | None] = {
        "speedup_tabular_over_evidently": evidently / tabular,
        "speedup_embedding_over_evidently": report / ours,
        "speedup_embedding_over_evidently_method_alone": method / ours,
        "speedup_embedding_over_exact_mmd": exact / ours,
        "speedup_embedding_over_exact_mmd_every_row_permuted": exact / whole,
    }
    notes = (
        "the gate thins each window to 2,000 rows and permutes those; Evidently and the exact MMD "
        "read them all (Evidently draws its picture of an embedding from a sample)",
    )
    return Result("drift-speed", machine, tuple(rows), ratios, notes)


def _time(
    rows: list[dict[str, Any]], what: str, who: str, call: Callable[[], object], repeats: int
) -> float:
    """The median of processor seconds, after one call that is not counted where calls are short."""
    if repeats > 1 or who == "gate":
        call()
    cpu, wall = list[float](), list[float]()
    for _ in range(repeats):
        began, began_cpu = time.perf_counter(), time.process_time()
        call()
        cpu.append(time.process_time() - began_cpu)
        wall.append(time.perf_counter() - began)
    rows.append({"what": what, "who": who, "cpu_s": spread(cpu), "wall_s": spread(wall)})
    return float(np.median(cpu))


def _table(values: np.ndarray[Any, Any]) -> DriftWindow:
    columns = {f"c{place}": Scalars.of(values[:, place]) for place in range(values.shape[1])}
    return DriftWindow(len(values), columns)


def _embedding(values: np.ndarray[Any, Any]) -> DriftWindow:
    column = Embedded(values, np.arange(len(values)), "e", ORIGIN)
    return DriftWindow(len(values), embeddings={"e": column})


def _frame(values: np.ndarray[Any, Any], prefix: str) -> pd.DataFrame:
    return pd.DataFrame(values, columns=[f"{prefix}{p}" for p in range(values.shape[1])])
