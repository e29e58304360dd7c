"""Tables of measurements for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from validators.contracts.digest import digest_bytes
from validators.contracts.engine import HostIdentity, Precision
from validators.precision.words import (
    BatchTiming,
    PrecisionMeasurement,
    PrecisionTable,
    TaskMetric,
    summarise_calls,
)

HOST = HostIdentity("cpu", "x86_64-test")


def timing(rounds_ms: Sequence[float], batch: int = 1) -> BatchTiming:
    return summarise_calls(batch, [[value] for value in rounds_ms], cpu_ms=1.0)


def task(kept: int, items: int) -> TaskMetric:
    share = kept / items
    return TaskMetric("top-1 agreement", "logits", items, kept, share - 0.1, min(1.0, share + 0.1))


def row(precision: Precision, rounds_ms: Sequence[float], **changes: Any) -> PrecisionMeasurement:
    values: dict[str, Any] = {
        "timings": (timing(rounds_ms),), "max_rel": 0.0, "cosine_min": 1.0, "cases": 1,
    }  # fmt: skip
    return PrecisionMeasurement(precision, **(values | changes))


def table(*rows: PrecisionMeasurement, real_items: int = 10) -> PrecisionTable:
    return PrecisionTable("image", "openvino", HOST, digest_bytes(b"onnx"), rows, real_items)


def steady(times_ms: Mapping[Precision, float], rounds: int = 5) -> PrecisionTable:
    """Every precision at one time, with a per cent of noise that all rounds share."""
    return table(
        *(row(p, [ms * (1 + 0.01 * at) for at in range(rounds)]) for p, ms in times_ms.items())
    )
