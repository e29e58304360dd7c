"""How fast and in how much memory recordings are ingested, and how far its offsets can be trusted.

A worker process ingests a folder through every stage (decode, observe, align, normalise, features)
with the alignment log written: 1080p30, or 480p, with 16 kHz sound, five texts a second and a
sensor of 100 Hz at once. Its memory and that of its decoders is watched from outside, as
proportional shares. Realtime is seconds of media by seconds of wall time; beside it, seconds of
media by those of processor time, which a busy machine does not change as much.

The estimator is run on pairs of courses whose lag is known, and on unrelated pairs.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil
from scipy import stats

from services.ingest.timebase.correlation import observe
from services.ingest.timebase.course import Drift, follow
from services.ingest.timebase.rule import TARGETS
from services.ingest.timebase.ticks import to_ns
from tests.benchmarks.ingest_media import write_recording, write_scan
from tests.benchmarks.result import Machine, Options, Result
from tests.services.ingest.recording.films import manifest
from tests.services.ingest.timebase.scenes import courses, scene

RECORDINGS: Mapping[str, tuple[float, tuple[int, int]]] = {
    "1080p30": (30, (1920, 1080)),
    "480p": (60, (854, 480)),
}
"""Seconds, and width and height."""
PAGES = 6
NULL_PAIRS = 3000
KNOWN_PAIRS = 200
SPAN_S = 30
STEADY_PAIRS, STEADY_S = 500, 120
HALF_FRAME_NS = 16_666_667
_POLL_S = 0.1


def run(options: Options) -> Result:
    machine = Machine.now()
    rows: list[dict[str, Any]] = []
    ratios: dict[str, list[float]] = {}
    for _ in range(options.repeats):
        for name, (seconds, size) in RECORDINGS.items():
            row = _recording(name, seconds, size)
            rows.append(row)
            key = "realtime_1080p30_all_stages" if name == "1080p30" else "realtime_480p"
            ratios.setdefault(key, []).append(row["realtime"])
            ratios.setdefault("peak_memory_mb", []).append(row["peak_mb"])
        row = _document()
        rows.append(row)
        ratios.setdefault("ocr_pages_per_s", []).append(row["pages_per_s"])
        ratios["peak_memory_mb"].append(row["peak_mb"])
    found = {name: statistics.median(values) for name, values in ratios.items()}
    found["peak_memory_mb"] = max(ratios["peak_memory_mb"])
    known, unrelated, steady = _known_pairs(), _unrelated_pairs(), _steady_pairs()
    rows += [*known, unrelated, steady]
    found["false_alarm_share"] = unrelated["told"] / unrelated["pairs"]
    found["false_alarm_upper_bound"] = unrelated["high"]
    found["false_loss_share"] = steady["told"] / steady["pairs"]
    found["offset_error_ms"] = max(row["median_error_ms"] for row in known)
    notes = (
        "realtime is by wall time; by processor time it is the media's seconds for one core",
        f"offsets: pairs of {SPAN_S} s in which each track sees 70 % of the same moments",
    )
    return Result("ingest", machine, tuple(rows), found, notes)


def _recording(name: str, seconds: float, size: tuple[int, int]) -> dict[str, Any]:
    with TemporaryDirectory(prefix="modalgate-bench-") as folder:
        write_recording(Path(folder), "a", seconds, size)
        manifest(Path(folder), {"id": "a", "video": "a.mp4", "audio": "a.wav",
                                "events": "a.jsonl", "sensors": "a-imu.jsonl"})  # fmt: skip
        found, peak_mb = _watched(Path(folder))
    spent = found["stages_ms"]
    return {
        "what": name,
        "media_s": seconds,
        "wall_s": round(found["wall_s"], 2),
        "realtime": round(seconds / found["wall_s"], 2),
        "by_cpu": round(seconds / found["cpu_s"], 2),
        "peak_mb": peak_mb,
        "samples": found["samples"],
        "video_s": round(spent["decode video"] / 1000, 2),
        "align_s": round(spent["align"] / 1000, 2),
        "audio_ms": round(found["offsets_ms"]["audio"], 1),
        "sensor_ms": round(found["offsets_ms"]["sensors"], 1),
    }


def _document() -> dict[str, Any]:
    with TemporaryDirectory(prefix="modalgate-bench-") as folder:
        write_scan(Path(folder) / "a.pdf", PAGES)
        times = {"page_times_ms": [1000 * page for page in range(PAGES)]}
        row = {"id": "a", "document": "a.pdf", "tracks": {"document": times}}
        manifest(Path(folder), row)
        found, peak_mb = _watched(Path(folder))
    spent_s = found["stages_ms"]["decode document"] / 1000
    return {
        "what": f"{PAGES} scanned pages", "wall_s": round(found["wall_s"], 2),
        "pages_per_s": round(PAGES / spent_s, 3),
        "by_cpu": round(PAGES / found["cpu_s"], 3), "peak_mb": peak_mb, "samples": found["samples"],
    }  # fmt: skip


def _watched(folder: Path) -> tuple[dict[str, Any], float]:
    """What the worker says, and the most memory of it and its children, in MB of shares."""
    command = [sys.executable, "-m", "tests.benchmarks.ingest_worker", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        peak = 0
        process = psutil.Process(worker.pid)
        while worker.poll() is None:
            peak = max(peak, _shares(process))
            time.sleep(_POLL_S)
        said = worker.stdout.read() if worker.stdout else ""
    if worker.returncode:
        raise RuntimeError(f"the worker ended with {worker.returncode}")
    found: dict[str, Any] = json.loads(said)
    if found["unreadable"]:
        raise RuntimeError(f"the recording was refused: {found['unreadable']}")
    return found, round(peak / 1e6, 1)


def _shares(process: psutil.Process) -> int:
    total = 0
    with contextlib.suppress(psutil.NoSuchProcess):
        for item in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                total += item.memory_full_info().pss
    return total


def _known_pairs() -> list[dict[str, Any]]:
    return [_known(lag_ms) for lag_ms in (128, -42)]


def _known(lag_ms: int) -> dict[str, Any]:
    errors, covered = [], 0
    for seed in range(KNOWN_PAIRS):
        pair = scene(seed, SPAN_S, lag=lambda at: at * 0 + lag_ms / 1000)
        seen = observe(*courses(pair, SPAN_S), resolution_ns=HALF_FRAME_NS)
        if seen is not None:
            errors.append(seen.offset_ns / 1e6 + lag_ms)
            covered += abs(seen.offset_ns / 1e6 + lag_ms) <= seen.within_ns / 1e6
    return {
        "what": f"audio {'behind' if lag_ms > 0 else 'ahead'} by {abs(lag_ms)} ms",
        "pairs": KNOWN_PAIRS,
        "told": len(errors),
        "median_error_ms": round(float(np.median(np.abs(errors))), 1),
        "worst_error_ms": round(float(np.max(np.abs(errors))), 1),
        "covered_share": round(covered / len(errors), 3),
    }


def _steady_pairs() -> dict[str, Any]:
    """Tracks that are in step all along: those that are told a step, a drift or a loss."""
    tolerance_ns = to_ns(TARGETS["audio"].tolerance_ms)
    told = 0
    for seed in range(STEADY_PAIRS):
        found = follow(*courses(scene(seed, STEADY_S), STEADY_S), resolution_ns=HALF_FRAME_NS)
        told += (
            isinstance(found, Drift)
            or len(found) > 1
            or any(abs(item.seen.offset_ns) > tolerance_ns for item in found)
        )
    interval = stats.binomtest(told, STEADY_PAIRS).proportion_ci(0.95, "wilson")
    return {
        "what": f"in step for {STEADY_S} s", "pairs": STEADY_PAIRS, "told": told,
        "low": round(float(interval.low), 5), "high": round(float(interval.high), 5),
    }  # fmt: skip


def _unrelated_pairs() -> dict[str, Any]:
    told = sum(
        observe(*courses(scene(seed, SPAN_S, related=False), SPAN_S)) is not None
        for seed in range(NULL_PAIRS)
    )
    interval = stats.binomtest(told, NULL_PAIRS).proportion_ci(0.95, "wilson")
    return {
        "what": "unrelated tracks", "pairs": NULL_PAIRS, "told": told,
        "low": round(float(interval.low), 5), "high": round(float(interval.high), 5),
    }  # fmt: skip
