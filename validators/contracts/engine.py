"""An engine: an encoder compiled by a backend for a target, with a precision and shape profiles.

The engine key is a digest of everything that decides what the compiled bytes do. A key that forgets
shapes, graph, version or host serves the wrong engine, so each of them is in it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from validators.contracts.digest import Digest, digest_value
from validators.contracts.errors import BadInput
from validators.contracts.tensors import TensorSpec


class Precision(enum.Enum):
    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    INT8 = "int8"
    INT4 = "int4"


class EngineState(enum.Enum):
    """BUILT: compiled, preflight passed. VERIFIED: loaded, and parity passed on a named host."""

    BUILT = "BUILT"
    VERIFIED = "VERIFIED"


@dataclass(frozen=True, slots=True)
class ShapeRange:
    """The shapes of one input tensor that a profile covers, inclusive."""

    tensor: str
    minimum: tuple[int, ...]
    optimum: tuple[int, ...]
    maximum: tuple[int, ...]

    def __post_init__(self) -> None:
        ranks = {len(self.minimum), len(self.optimum), len(self.maximum)}
        ordered = len(ranks) == 1 and all(
            1 <= low <= best <= high
            for low, best, high in zip(self.minimum, self.optimum, self.maximum, strict=True)
        )
        if not ordered:
            raise BadInput(
                f"the shape range of {self.tensor} is not minimum <= optimum <= maximum",
                where=f"{self.minimum} {self.optimum} {self.maximum}",
                remedy="Give three shapes of one rank, each dimension at least 1 and in order.",
            )

    def covers(self, shape: Sequence[int]) -> bool:
        return len(shape) == len(self.minimum) and all(
            low <= size <= high
            for low, size, high in zip(self.minimum, shape, self.maximum, strict=True)
        )


@dataclass(frozen=True, slots=True)
class ShapeProfile:
    """One set of shape ranges, a range per input, that an engine is compiled and tuned for."""

    ranges: tuple[ShapeRange, ...]

    def covers(self, shapes: Mapping[str, Sequence[int]]) -> bool:
        return all(
            item.tensor in shapes and item.covers(shapes[item.tensor]) for item in self.ranges
        )


class Outside(enum.Enum):
    """What may be done with a request whose shape no profile covers.

    PAD: raise a size that is below every fitting profile's minimum. SPLIT: run the batch in parts.
    CUT: drop the end of a dimension that is too long; the answer is degraded and says so. What
    none of the allowed ones helps is refused with a reason and with what would fit.
    """

    PAD = "pad"
    SPLIT = "split"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class HostIdentity:
    """Where an engine runs: part of its key.

    `kind` is "cpu" or "gpu"; `name` a target's name for people ("x86_64-avx512_bf16", "SM89");
    `features` the instruction sets or driver facts that change compiled code, sorted.
    """

    kind: str
    name: str
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """Everything that decides an engine's bytes and behaviour."""

    encoder: str
    onnx: Digest  # of the checked ONNX file, external data included
    backend: str
    backend_version: str
    precision: Precision
    profiles: tuple[ShapeProfile, ...]
    target: HostIdentity
    flags: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> Digest:
        return digest_value("engine", self)


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far an engine's output is from the source model's on one case. No judgement in it."""

    case: str  # "profile 0 maximum", "between 3"
    output: str
    max_abs: float
    max_rel: float  # largest |difference| over the largest |reference|
    cosine_min: float  # least cosine over the leading axis
    nonfinite: int  # NaN or infinity in the engine's output where the reference is finite


@dataclass(frozen=True, slots=True)
class ParityRecord:
    """The measured deviations of one engine build on one host."""

    host: HostIdentity
    reference: str  # what it was compared with: "torch 2.13.0", "onnx reference"
    inputs: Digest  # of the inputs that were run
    deviations: tuple[Deviation, ...]


@dataclass(frozen=True, slots=True)
class BuildPhase:
    name: str
    duration_ms: float


@dataclass(frozen=True, slots=True)
class CanaryOutput:
    """What one output of the canary run looked like when the engine was verified."""

    name: str
    shape: tuple[int, ...]
    peak: float  # largest |value|
    samples: tuple[float, ...]  # evenly spaced over the flattened output


@dataclass(frozen=True, slots=True)
class EngineManifest:
    """What is known of one engine build; sealed with a signature beside the engine's bytes.

    `inputs` and `outputs` are the contract's tensors, so that a host can guard and try the engine
    with nothing else at hand. `source_onnx` names the encoder's own ONNX where `spec.onnx` is
    another one that a precision was baked into.
    """

    key: Digest
    spec: EngineSpec
    engine: Digest  # of the compiled bytes
    size_bytes: int
    state: EngineState
    build_log: Digest
    phases: tuple[BuildPhase, ...]
    canary_inputs: Digest | None = None  # run after every load
    parity: Digest | None = None  # of the ParityRecord document
    verified_on: HostIdentity | None = None
    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    canary_outputs: tuple[CanaryOutput, ...] = ()
    source_onnx: Digest | None = None

    @property
    def source(self) -> Digest:
        """The ONNX that the encoder's fingerprint is of, and that parity compares with."""
        return self.source_onnx or self.spec.onnx


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What parity accepts for one precision."""

    max_rel: float
    cosine_min: float


TOLERANCES: dict[Precision, Tolerance] = {
    Precision.FP32: Tolerance(max_rel=1e-3, cosine_min=0.9999),
    Precision.FP16: Tolerance(max_rel=2e-2, cosine_min=0.999),
    Precision.BF16: Tolerance(max_rel=8e-2, cosine_min=0.995),
    Precision.INT8: Tolerance(max_rel=2e-1, cosine_min=0.98),
    Precision.INT4: Tolerance(max_rel=3e-1, cosine_min=0.95),
}
"""Starting points; a pipeline's `gates.parity` overrides them."""
