"""One encoder in two versions: outside by its vectors, inside by its layers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flows.compatibility.items import Items
from flows.compatibility.sides import Side, with_engine
from flows.interruption import told_to_end
from flows.progress import reporter
from flows.release.adapters import JudgedPair, OpenPair, compare_pair
from flows.release.versions import VersionFailed, judge_failure, open_version
from flows.workspace import Workspace
from services.children.scratch import scratch
from services.compatibility.sandbox import Examination, VersionSource, examine
from services.engines.manifest import open_manifest
from validators.compatibility.adapters import AdapterRecord
from validators.compatibility.layer_verdict import LayerSettings, assess_layers
from validators.compatibility.measured import CompatibilityMeasurement, CompatibilityWord
from validators.compatibility.presence import lost_encoder, new_encoder
from validators.compatibility.sandboxed import SandboxMeasurement
from validators.compatibility.verdict import GATE
from validators.compatibility.words import CompatibilitySettings, word_of
from validators.contracts.engine import Precision
from validators.contracts.errors import NotFound
from validators.contracts.pipeline import SourceKind
from validators.contracts.ports import Tensors
from validators.contracts.verdict import Outcome, Verdict, conclude

ITEMS = 64
"""Samples that two versions are compared on, unless told otherwise."""

MAX_TRACED = 64
"""Items that are followed layer by layer."""

_WORST = (
    CompatibilityWord.COMPATIBLE, CompatibilityWord.ADAPTER, CompatibilityWord.REINDEX,
    CompatibilityWord.BLOCK,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of it. `measured` and `inside` are None where both sides have the same encoder."""

    encoder: str
    old: str
    new: str
    word: CompatibilityWord | None
    verdict: Verdict
    measured: CompatibilityMeasurement | None = None
    inside: SandboxMeasurement | None = None
    adapters: tuple[AdapterRecord, ...] = ()

    def document(self) -> dict[str, Any]:
        """The judged part: traces stay out of documents."""
        return {
            "encoder": self.encoder,
            "old": self.old,
            "new": self.new,
            "word": self.word,
            "outcome": self.verdict.outcome,
            "findings": self.verdict.findings,
            "metrics": dict(self.verdict.metrics),
            "geometries": self.measured.geometries if self.measured else (),
            "differences": (self.measured.differences if self.measured else ())
            + (self.inside.differences if self.inside else ()),
            "adapters": self.adapters,
        }


def compare_sides(
    workspace: Workspace,
    sides: tuple[Side, Side],
    items: Items,
    *,
    encoder: str | None = None,
    count: int = ITEMS,
) -> list[Comparison]:
    """Every encoder of either side, or the one that is named; one that is lost is a failure.

    Raises:
        NotFound: no such encoder on either side.  Otherwise as building engines does.
    """
    old, new = sides
    names = [
        name for name in dict.fromkeys((*old.exported, *new.exported)) if encoder in (None, name)
    ]
    if not names:
        raise NotFound(
            f"neither {old.name} nor {new.name} has an encoder {encoder or ''}",
            where=f"{old.name}, {new.name}",
            remedy=f"Use one of: {', '.join(old.exported)}.",
        )
    found = []
    for done, name in enumerate(names):
        reporter().advanced("compatibility", done, len(names), name)
        one = alone(sides, name)
        found.append(one or _compare(workspace, sides, items, name, count=count))
    return found


def alone(sides: tuple[Side, Side], name: str) -> Comparison | None:
    """What is said of an encoder that one of the sides has not; None where both have it."""
    old, new = sides
    if name in old.exported and name in new.exported:
        return None
    labels = [
        f"{side.name} ({side.contract(name).version if name in side.exported else 'absent'})"
        for side in sides
    ]
    finding = (
        lost_encoder(name, old.contract(name).version)
        if name in old.exported
        else new_encoder(name, new.contract(name).version)
    )
    return Comparison(name, labels[0], labels[1], None, conclude(GATE, [finding], examined=1))


def _compare(
    workspace: Workspace, sides: tuple[Side, Side], items: Items, name: str, *, count: int
) -> Comparison:
    labels = [f"{side.name} ({side.contract(name).version})" for side in sides]
    if sides[0].fingerprint(name) == sides[1].fingerprint(name):
        verdict = conclude(GATE, [], examined=1, metrics={"identical": 1.0})
        return Comparison(name, labels[0], labels[1], CompatibilityWord.COMPATIBLE, verdict)
    old, new = (with_engine(workspace, side, name) for side in sides)
    # seeded inputs of two contracts may differ in number: what both have is compared
    pairs = zip(items.feeds(old, name, count), items.feeds(new, name, count), strict=False)
    feeds = list(pairs)
    settings = CompatibilitySettings(linf=new.pipeline.gates.compatibility_linf)
    try:
        with (
            open_version(workspace, old.contract(name), old.engines[name], "old") as before,
            open_version(workspace, new.contract(name), new.engines[name], "new") as after,
        ):
            pair = OpenPair(
                before, after, old.fingerprint(name), new.fingerprint(name),
                items.raws(new.contract(name)),
            )  # fmt: skip
            judged = compare_pair(workspace, pair, feeds, settings)
    except VersionFailed as error:
        judged = JudgedPair(judge_failure(error))
    settings = replace(settings, adapters=judged.adapters)
    inside = _look_inside(workspace, (old, new), name, feeds[:MAX_TRACED])
    outer, measured = judged.verdict, judged.measured
    inner = assess_layers(inside, LayerSettings(linf=settings.linf))
    verdict = conclude(
        GATE, (*outer.findings, *inner.findings), examined=measured.items if measured else 1,
        metrics={**dict(outer.metrics), **dict(inner.metrics)},
    )  # fmt: skip
    word = _word(verdict, measured, settings)
    return Comparison(name, labels[0], labels[1], word, verdict, measured, inside, judged.adapters)


def _word(
    verdict: Verdict, measured: CompatibilityMeasurement | None, settings: CompatibilitySettings
) -> CompatibilityWord | None:
    """The worst word of the embeddings; BLOCK where anything blocks; None where one failed."""
    if any(item.outcome is Outcome.FAIL and not item.waivable for item in verdict.findings):
        return CompatibilityWord.BLOCK
    geometries = measured.geometries if measured else ()
    words = [word_of(geometry, settings) for geometry in geometries]
    if Outcome.ERROR in {item.outcome for item in verdict.findings} or None in words:
        return None
    known = [word for word in words if word is not None]
    return max(known, key=_WORST.index, default=CompatibilityWord.COMPATIBLE)


def _look_inside(
    workspace: Workspace,
    sides: tuple[Side, Side],
    name: str,
    feeds: list[tuple[Tensors, Tensors]],
) -> SandboxMeasurement:
    workdir = workspace.home.folder("engines", "work")
    precisions = tuple(dict.fromkeys(side.engines[name].precision for side in sides))
    plan = Examination(
        required=precisions,
        planned=tuple(item for item in _planned(sides[1], name) if item not in precisions),
        cancel=told_to_end,
        progress=lambda phase: reporter().started("layers", f"{name}: {phase}"),
    )
    with scratch(workdir) as folder:
        sources = [
            _source(workspace, side, name, folder / str(at)) for at, side in enumerate(sides)
        ]
        return examine(
            sources[0], sources[1], feeds, workdir, plan=plan, read_asset=workspace.store.get
        )


def _planned(side: Side, name: str) -> tuple[Precision, ...]:
    entry = side.pipeline.encoder(name)
    return (entry.precision, *entry.precisions)


def _source(workspace: Workspace, side: Side, name: str, folder: Path) -> VersionSource:
    folder.mkdir()
    onnx, path = folder / "model.onnx", folder / "engine"
    engine = side.engines[name]
    workspace.store.fetch(side.onnx(name), onnx)
    workspace.store.fetch(engine.engine, path)
    manifest = open_manifest(workspace.store.get(engine.manifest), workspace.verifier)
    source = side.pipeline.encoder(name).source
    torch = source if source.kind is SourceKind.TORCH and side.bundle is None else None
    return VersionSource(side.contract(name), onnx, torch, side.base, (manifest, path))


def worst_of(comparisons: list[Comparison]) -> Verdict:
    """One verdict over all encoders, each finding under its encoder's name."""
    findings = [item for one in comparisons for item in one.verdict.findings]
    metrics = {
        f"{one.encoder}.{name}": value for one in comparisons for name, value in one.verdict.metrics
    }
    return conclude(GATE, findings, examined=len(comparisons), metrics=metrics)
