"""What the engine tasks are asked, and what a probe answers: JSON documents, never a pickle."""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import (
    EngineManifest,
    EngineSpec,
    HostIdentity,
    Precision,
    ShapeProfile,
    Tolerance,
)
from validators.contracts.pipeline import EncoderEntry

_TASKS = "services.engines.tasks."
BAKE = _TASKS + "bake"
BUILD = _TASKS + "build"
EXPORT_ONNX = _TASKS + "export_onnx"
EXPORT_TORCH = _TASKS + "export_torch"
PROBE = _TASKS + "probe"
REFERENCE_ONNX = _TASKS + "reference_onnx"
REFERENCE_TORCH = _TASKS + "reference_torch"
RUN_ENGINE = _TASKS + "run_engine"
SERVE_ENGINE = _TASKS + "serve_engine"


@dataclass(frozen=True, slots=True)
class Availability:
    """What a backend can do on this machine.

    `available`: it can build here. `can_run`: it can load and run here. `reason` says why not, or
    what it runs on. `host` is this machine as the backend's engines see it, where it can run.
    """

    available: bool
    reason: str
    version: str = ""
    can_run: bool = False
    host: HostIdentity | None = None


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Make a checked ONNX of an encoder's source. `base` is where relative paths start."""

    entry: EncoderEntry
    base: str
    out: str


@dataclass(frozen=True, slots=True)
class BakeRequest:
    """Bake a precision into a checked ONNX. `calibration`: a file of cases."""

    contract: EncoderContract
    precision: Precision
    profiles: tuple[ShapeProfile, ...]
    tolerance: Tolerance | None
    onnx: str
    calibration: str
    out: str


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """Compile an ONNX file; the bytes go to `out`."""

    spec: EngineSpec
    onnx: str
    out: str


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    backend: str


@dataclass(frozen=True, slots=True)
class ReferenceRequest:
    """Run the source model itself over cases (`location`: a torch factory or an ONNX file)."""

    contract: EncoderContract
    location: str
    base: str
    feeds: str
    out: str


@dataclass(frozen=True, slots=True)
class EngineRunRequest:
    """Run a built engine over cases, in the process that may die of it."""

    manifest: EngineManifest
    engine: str
    feeds: str
    out: str
    threads: int


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """Load a verified engine and answer call after call until `calls` is closed.

    `calls` and `answers` are the child's file descriptors of two pipes that carry frames.
    """

    manifest: EngineManifest
    engine: str
    threads: int
    calls: int
    answers: int
