"""What the sandbox's tasks are asked, and what they answer: JSON documents, never a pickle."""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import EngineManifest, Precision

_TASKS = "services.compatibility.tasks."
TRACE_GRAPH = _TASKS + "trace_graph"
TRACE_MODULE = _TASKS + "trace_module"

ONNXRUNTIME, OPENVINO, ENGINE = "onnxruntime", "openvino", "engine"
"""What traces a graph; an engine is a sealed one."""


@dataclass(frozen=True, slots=True)
class TracePlan:
    """One trace to take of a graph. ONNX Runtime takes the precision that the model carries."""

    runtime: str
    precision: Precision


@dataclass(frozen=True, slots=True)
class GraphRequest:
    """A checked ONNX over the items in `feeds`; trace `i` goes to `folder/graph-<i>.npz`.

    `engine` and `manifest` are those of a sealed engine, where one is planned.
    """

    contract: EncoderContract
    onnx: str
    manifest: EngineManifest | None
    engine: str
    feeds: str
    folder: str
    plans: tuple[TracePlan, ...]


@dataclass(frozen=True, slots=True)
class ModuleRequest:
    """A torch factory over the items in `feeds`; trace `i` goes to `folder/module-<i>.npz`."""

    contract: EncoderContract
    factory: str
    base: str
    feeds: str
    folder: str
    precisions: tuple[Precision, ...]
