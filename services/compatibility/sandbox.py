"""Examines two versions of an encoder side by side, each in child processes of its own.

A version is somebody else's code and weights: where it crashes, hangs or takes too much memory,
that is something known about it, not an end of ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from services.children.errors import BuildCancelled
from services.children.phases import Progress
from services.children.process import Cancel, Limits, run_child
from services.children.scratch import scratch
from services.compatibility.requests import (
    ENGINE,
    ONNXRUNTIME,
    OPENVINO,
    TRACE_GRAPH,
    TRACE_MODULE,
    GraphRequest,
    ModuleRequest,
    TracePlan,
)
from services.compatibility.tokenizers import read_tokenizer
from services.compatibility.traces.files import load_trace
from services.engines.tensors import save_cases
from validators.compatibility.facts import (
    ModelFacts,
    compare_models,
    compare_tokenizers,
    is_epsilon,
)
from validators.compatibility.layers import Trace
from validators.compatibility.measured import StaticDifference
from validators.compatibility.sandboxed import (
    ExaminedVersion,
    SandboxMeasurement,
    compare_lengths,
)
from validators.contracts.digest import Digest
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import EngineManifest, Precision
from validators.contracts.errors import BadInput, ModalgateError, TooLarge
from validators.contracts.pipeline import EncoderSource, SourceKind
from validators.contracts.ports import Tensors

MAX_ITEMS = 512
"""Items of one examination; a rate of 1 in 500 is seen once among them, more often than not."""

CHILD = Limits(timeout_s=300.0, memory_bytes=4 * 1024**3)
TOKENIZER = "tokenizer"

_TORCH = (Precision.FP32, Precision.BF16, Precision.FP16)
_OPENVINO = (Precision.FP32, Precision.BF16, Precision.FP16)


@dataclass(frozen=True, slots=True)
class VersionSource:
    """One version: its contract and checked ONNX, and what else is at hand of it.

    `source` and `base` are the torch source and the folder it is found from; `engine` is a sealed
    engine's manifest and file.
    """

    contract: EncoderContract
    onnx: Path
    source: EncoderSource | None = None
    base: Path = field(default_factory=Path)
    engine: tuple[EngineManifest, Path] | None = None


@dataclass(frozen=True, slots=True)
class Examination:
    """What is to be traced, and within which limits.

    `required` precisions will run on the target at hand, `planned` ones on others. OpenVINO is
    traced in each of them that it has; a torch source in each that torch has. fp32 is always traced
    beside them, for masks and for what a half does to an activation. `torch_items` bounds the items
    of the torch source, the first ones: on a CPU convolutions in half are slow.
    """

    required: tuple[Precision, ...] = (Precision.FP32,)
    planned: tuple[Precision, ...] = ()
    openvino: bool = True
    torch: bool = True
    torch_items: int = MAX_ITEMS
    limits: Limits = CHILD
    progress: Progress | None = None
    cancel: Cancel | None = None

    @property
    def precisions(self) -> tuple[Precision, ...]:
        return tuple(dict.fromkeys((Precision.FP32, *self.required, *self.planned)))


def examine(
    old: VersionSource | None,
    new: VersionSource,
    feeds: Sequence[tuple[Tensors, Tensors]],
    workdir: Path,
    *,
    plan: Examination | None = None,
    read_asset: Callable[[Digest], bytes] | None = None,
) -> SandboxMeasurement:
    """Trace both versions on the same items, one after the other, and compare their files.

    Args:
        old: None for a version that replaces nothing; the first of each pair of feeds is unused.
        feeds: an item each, as (input of the old version, input of the new one), a batch of one.
        read_asset: gives the tokenizers, where the versions have any.

    Raises:
        BadInput: no items, or two encoders that are no versions of each other.
        TooLarge: more than MAX_ITEMS.  BuildCancelled: the caller asked for an end.
    """
    plan = plan or Examination()
    _check(old, new, len(feeds))
    before = None
    if old is not None:
        before = _examine_version(old, [feed for feed, _ in feeds], workdir, plan)
    after = _examine_version(new, [feed for _, feed in feeds], workdir, plan)
    differences: tuple[StaticDifference, ...] = ()
    if old is not None and before is not None:
        lengths = compare_lengths(before, after)
        seen = {item.what for item in lengths}
        differences = (
            *(item for item in _between_models(before, after) if item.what not in seen),
            *lengths,
            *_between_tokenizers(old.contract, new.contract, read_asset),
        )
    return SandboxMeasurement(
        new.contract.name, before, after, len(feeds), plan.required, plan.planned, differences
    )


def _check(old: VersionSource | None, new: VersionSource, items: int) -> None:
    if old is not None and old.contract.name != new.contract.name:
        raise BadInput(
            "two different encoders are no versions of each other",
            where=f"{old.contract.name}, {new.contract.name}",
            remedy="Compare versions of one encoder.",
        )
    if items == 0:
        raise BadInput("there is no item to examine the encoder with", where=new.contract.name)
    if items > MAX_ITEMS:
        raise TooLarge(
            f"the sandbox examines at most {MAX_ITEMS} items", where=new.contract.name,
            remedy="Take a sample of the data.",
        )  # fmt: skip


def _examine_version(
    source: VersionSource, feeds: Sequence[Tensors], workdir: Path, plan: Examination
) -> ExaminedVersion:
    started = time.perf_counter()
    with scratch(workdir) as folder:
        items, fewer = folder / "feeds.npz", folder / "fewer.npz"
        save_cases(items, feeds)
        graph = _Child(TRACE_GRAPH, _graph_request(source, items, folder, plan), "graph")
        children = [graph]
        module = None
        if plan.torch and source.source is not None and source.source.kind is SourceKind.TORCH:
            save_cases(fewer, feeds[: plan.torch_items])
            module = _Child(TRACE_MODULE, _module_request(source, fewer, folder, plan), "module")
            children.append(module)
        subject = f"{source.contract.name} {source.contract.version}"
        for child in children:
            child.run(folder, subject, plan)
        return ExaminedVersion(
            source.contract.version,
            tuple(trace for child in children for trace in child.traces),
            graph.facts,
            module.facts if module is not None else None,
            tuple(child.fault for child in children if child.fault),
            round(time.perf_counter() - started, 3),
            max(child.peak_bytes for child in children),
        )


def _graph_request(
    source: VersionSource, feeds: Path, folder: Path, plan: Examination
) -> GraphRequest:
    plans = [TracePlan(ONNXRUNTIME, Precision.FP32)]
    if plan.openvino:
        plans += [TracePlan(OPENVINO, item) for item in plan.precisions if item in _OPENVINO]
    manifest, engine = source.engine or (None, Path())
    if manifest is not None:
        plans.append(TracePlan(ENGINE, manifest.spec.precision))
    return GraphRequest(
        source.contract, str(source.onnx.resolve()), manifest, str(engine.resolve()), str(feeds),
        str(folder), tuple(plans),
    )  # fmt: skip


def _module_request(
    source: VersionSource, feeds: Path, folder: Path, plan: Examination
) -> ModuleRequest:
    factory = source.source.location if source.source is not None else ""
    return ModuleRequest(
        source.contract, factory, str(source.base.resolve()), str(feeds), str(folder),
        tuple(item for item in plan.precisions if item in _TORCH),
    )  # fmt: skip


@dataclass(slots=True)
class _Child:
    """One child of a version, and what is left of it."""

    task: str
    request: GraphRequest | ModuleRequest
    stem: str
    traces: tuple[Trace, ...] = ()
    facts: ModelFacts | None = None
    fault: str = ""
    peak_bytes: int = 0

    def run(self, folder: Path, subject: str, plan: Examination) -> None:
        phase = ["start"]

        def progress(name: str) -> None:
            phase[0] = name
            if plan.progress is not None:
                plan.progress(name)

        try:
            result = run_child(
                self.task, self.request, folder,
                subject=subject, limits=plan.limits, progress=progress, cancel=plan.cancel,
            )  # fmt: skip
            self.facts, self.peak_bytes = result.answer(ModelFacts), result.peak_bytes
        except BuildCancelled:
            raise
        except ModalgateError as error:  # of the version: its crash, its limits, its own refusal
            self.fault = f"in {phase[0]}: {error.what}"
        self.traces = tuple(load_trace(path) for path in self._files(folder))

    def _files(self, folder: Path) -> list[Path]:
        found = folder.glob(f"{self.stem}-*.npz")
        return sorted(found, key=lambda path: int(path.stem.rpartition("-")[2]))


def _between_models(old: ExaminedVersion, new: ExaminedVersion) -> tuple[StaticDifference, ...]:
    """Of the graphs; epsilons by their modules' names, where both have a module."""
    found: tuple[StaticDifference, ...] = ()
    if old.graph is not None and new.graph is not None:
        found = compare_models(old.graph, new.graph)
    if old.module is not None and new.module is not None:
        named = tuple(item for item in compare_models(old.module, new.module) if is_epsilon(item))
        if named:
            found = (*(item for item in found if not is_epsilon(item)), *named)
    return found


def _between_tokenizers(
    old: EncoderContract, new: EncoderContract, read_asset: Callable[[Digest], bytes] | None
) -> tuple[StaticDifference, ...]:
    before, after = (dict(contract.preprocess.assets).get(TOKENIZER) for contract in (old, new))
    if read_asset is None or before is None or after is None or before == after:
        return ()
    return compare_tokenizers(read_tokenizer(read_asset(before)), read_tokenizer(read_asset(after)))
