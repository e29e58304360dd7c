"""What the measuring tasks are asked, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts.engine import EngineManifest, Precision
from validators.precision.bandwidth import Layer

MEASURE_ENGINE = "services.engines.tasks.measure_engine"
MEASURE_MACHINE = "services.engines.tasks.measure_machine"


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """Time a built engine in this process, which is fresh and runs nothing else.

    `feeds` is a file of cases: the first `timed` are called over and over, each for `budget_ms` of
    wall time and between `least_calls` and `most_calls`; the others are answered once, into `out`.
    """

    manifest: EngineManifest
    engine: str
    feeds: str
    timed: int
    out: str
    threads: int = 1
    warm_up: int = 2
    least_calls: int = 5
    most_calls: int = 100
    budget_ms: float = 400.0


@dataclass(frozen=True, slots=True)
class CaseTiming:
    """The calls of one case. `first_ms`: its very first call, where its shape is a new one."""

    first_ms: float
    calls_ms: tuple[float, ...]
    cpu_ms: float  # of a call, mean


@dataclass(frozen=True, slots=True)
class Measured:
    """One child's figures. Bytes are resident memory as /proc says; the peak is the process's.

    `cold_ms` is the time from the start of the process to its first answer (10 ms steps).
    """

    load_ms: float
    cold_ms: float
    resident_bytes: int  # what loading and the first call added
    peak_bytes: int
    answer_bytes: int  # copied out of the engine in one call of the first case
    cases: tuple[CaseTiming, ...]


@dataclass(frozen=True, slots=True)
class MachineRequest:
    """Measure this machine's roofs, and count an encoder's work.

    `shapes` are those of one item; `sizes_bytes` the working sets that reading is timed at.
    """

    onnx: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    sizes_bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """What was measured, one thread. `line_over_word`: see `services.engines.precision.roofs`."""

    layers: tuple[Layer, ...]
    read: tuple[tuple[int, float], ...]  # bytes of the working set, bytes/s
    flops: tuple[tuple[Precision, float], ...]
    line_over_word: float
