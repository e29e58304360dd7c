"""A whole release of the reference service, and the same again with nothing changed.

The baseline is the first run: an empty state folder, every step done. The second run finds every
step in the journal. Memory is the largest sum over the process tree, sampled ten times a second.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks.result import Machine, Options, Result, spread

PIPELINE = Path(__file__).resolve().parents[2] / "flows/examples/storefront/pipeline.yaml"


@dataclass(frozen=True, slots=True)
class Timed:
    wall_s: float
    peak_memory_mb: float
    document: Mapping[str, Any]


def run(options: Options) -> Result:
    machine = Machine.now()
    pairs = [_pair() for _ in range(options.repeats)]
    rows = [
        {"run": run_name, "step": step["name"], "cached": step["cached"], "wall_s": step["wall_s"],
         "cpu_s": step["cpu_s"], "peak_memory_mb": step["peak_memory_mb"]}
        for run_name, timed in zip(("first", "second"), pairs[-1], strict=True)
        for step in timed.document["steps"]
    ]  # fmt: skip
    for position, run_name in enumerate(("first", "second")):
        walls = [pair[position].wall_s for pair in pairs]
        rows.append(
            {"run": run_name, "step": "whole", "wall_s": spread(walls)["median"], **spread(walls)}
        )
    return Result(
        "release",
        machine,
        tuple(rows),
        {
            "second_run_over_first": statistics.median(b.wall_s / a.wall_s for a, b in pairs),
            "peak_memory_mb": max(timed.peak_memory_mb for pair in pairs for timed in pair),
        },
    )


def _pair() -> tuple[Timed, Timed]:
    with tempfile.TemporaryDirectory(prefix="modalgate-bench-") as home:
        environment = {**os.environ, "MODALGATE_HOME": home}
        try:
            first, second = _release(environment), _release(environment)
        finally:
            subprocess.run(
                [*_MODALGATE, "stop", "storefront", "--json"],
                env=environment,
                check=False,
                stdout=subprocess.DEVNULL,
            )
    if any(engine["cached"] is False for engine in second.document["engines"]):
        raise RuntimeError("the second run built an engine again")
    return first, second


_MODALGATE = (sys.executable, "-m", "flows.cli")


def _release(environment: Mapping[str, str]) -> Timed:
    command = [*_MODALGATE, "release", str(PIPELINE), "--json"]
    command += ["--approve-as", "ana", "--approve-as", "ben"]
    started = time.perf_counter()
    child = subprocess.Popen(command, env=dict(environment), stdout=subprocess.PIPE)
    peak_bytes = 0
    with tempfile.TemporaryFile() as output:
        assert child.stdout is not None
        os.set_blocking(child.stdout.fileno(), False)
        while child.poll() is None:
            peak_bytes = max(peak_bytes, _tree_bytes(child.pid))
            output.write(child.stdout.read() or b"")
            time.sleep(0.1)
        wall_s = time.perf_counter() - started
        output.write(child.stdout.read() or b"")
        output.seek(0)
        document = json.loads(output.read())
    if child.returncode != 0:
        raise RuntimeError(f"the release ended with {child.returncode}: {document.get('error')}")
    return Timed(wall_s, peak_bytes / 2**20, document)


def _tree_bytes(pid: int) -> int:
    """Proportional would be fairer to shared pages; resident is what a limit would count."""
    total = 0
    try:
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
    except psutil.Error:
        return 0
    return total
