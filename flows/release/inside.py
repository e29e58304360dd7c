"""What happens inside an encoder, looked at in child processes: part of the compatibility gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from flows.interruption import told_to_end
from flows.release.run import Release
from flows.release.values import Exported
from services.children.scratch import scratch
from services.compatibility.sandbox import Examination, VersionSource, examine
from services.engines.manifest import open_manifest
from validators.compatibility.layer_report import report_layers
from validators.compatibility.layer_verdict import LayerSettings, assess_layers
from validators.contracts.bundle import BundledEncoder, BundledEngine
from validators.contracts.digest import Digest, canonical_json
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import Precision
from validators.contracts.ports import Tensors
from validators.contracts.verdict import Evidence, Verdict

MAX_TRACED = 32
"""Items that are traced layer by layer; the engines' outputs are judged on more."""

MAX_HALVES = 12
"""Items that a torch source is run on in half precision, which is slow on a CPU."""

_HALVES = (Precision.FP16, Precision.BF16)


def look_inside(
    release: Release,
    new: tuple[Exported, BundledEngine],
    old: tuple[BundledEncoder, BundledEngine] | None,
    feeds: Sequence[tuple[Tensors, Tensors]],
) -> Verdict:
    """Trace an encoder, beside the champion's version of it where there is one.

    The torch source is traced where a half will run somewhere: only there does it show what the
    graph on a CPU does not. The champion's source may be gone; its ONNX and its engine are kept.
    """
    exported, engine = new
    name = exported.contract.name
    entry = release.pipeline.encoder(name)
    planned = tuple(
        plan.precision or entry.precision
        for plan in release.pipeline.backends
        if plan.targets != ("host",)
    )
    precisions = (engine.precision, *planned)
    plan = Examination(
        required=(engine.precision,),
        planned=tuple(dict.fromkeys(item for item in planned if item is not engine.precision)),
        openvino=engine.backend == "openvino" or Precision.BF16 in precisions,
        torch=any(half in precisions for half in _HALVES),
        torch_items=MAX_HALVES,
        cancel=told_to_end,
    )
    store = release.workspace.store
    settings = LayerSettings(linf=release.pipeline.gates.compatibility_linf)
    workdir = release.workspace.home.folder("engines", "work")
    with scratch(workdir) as folder:
        before = None
        if old is not None:
            encoder, running = old
            before = _version(release, encoder.contract, encoder.onnx, running, folder / "old")
        after = replace(
            _version(release, exported.contract, exported.onnx, engine, folder / "new"),
            source=entry.source, base=release.base,
        )  # fmt: skip
        measured = examine(
            before, after, feeds[:MAX_TRACED], workdir, plan=plan, read_asset=store.get
        )
    document = canonical_json(report_layers(measured, settings))
    file = f"compatibility-{name}.json"
    release.write_evidence(file, document)
    return assess_layers(measured, settings).with_evidence(Evidence(file, store.put(document)))


def _version(
    release: Release, contract: EncoderContract, onnx: Digest, engine: BundledEngine, folder: Path
) -> VersionSource:
    """A version's files out of the store."""
    store, verifier = release.workspace.store, release.workspace.verifier
    folder.mkdir()
    store.fetch(onnx, folder / "model.onnx")
    store.fetch(engine.engine, folder / "engine")
    manifest = open_manifest(store.get(engine.manifest), verifier)
    return VersionSource(contract, folder / "model.onnx", engine=(manifest, folder / "engine"))
