"""What is compared: a registered version, an alias, or a pipeline file that was never released."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flows.interruption import told_to_end
from flows.journal import Journal
from flows.pipeline_reading import read_pipeline
from flows.progress import reporter
from flows.release.bundle import find
from flows.release.engines import bundled_engine, export
from flows.release.register import CANDIDATE, CHAMPION, ROLLBACK, record_of
from flows.release.run import Release
from flows.release.values import Exported, ReleaseOptions
from flows.workspace import Workspace, actor
from services.engines.precision.bake import needs_baking
from services.engines.specs import specify
from validators.compatibility.matrix import Role
from validators.contracts.bundle import Bundle, BundledEngine
from validators.contracts.digest import Digest
from validators.contracts.documents import load
from validators.contracts.encoder import EncoderContract, encoder_fingerprint
from validators.contracts.engine import Precision
from validators.contracts.errors import BadInput, NotFound
from validators.contracts.pipeline import EncoderEntry, Pipeline
from validators.contracts.ports import ModelVersion
from validators.contracts.verdict import GatePolicy, require_pass

ROLES = {CHAMPION: Role.LIVE, ROLLBACK: Role.ROLLBACK, CANDIDATE: Role.CANDIDATE}
_FILES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Side:
    """One state of a service. `bundle` and `dataset` are there where it was released.

    `engines` are filled where they were built; a pipeline file's are built as they are asked for.
    """

    name: str
    role: Role
    pipeline: Pipeline
    base: Path
    exported: Mapping[str, Exported]
    engines: Mapping[str, BundledEngine]
    bundle: Bundle | None = None
    dataset: Digest | None = None

    @property
    def service(self) -> str:
        return self.pipeline.service

    def contract(self, encoder: str) -> EncoderContract:
        """Raises NotFound."""
        return self._exported(encoder).contract

    def fingerprint(self, encoder: str) -> Digest:
        found = self._exported(encoder)
        return encoder_fingerprint(found.contract, found.onnx)

    def onnx(self, encoder: str) -> Digest:
        return self._exported(encoder).onnx

    def _exported(self, encoder: str) -> Exported:
        if encoder not in self.exported:
            known = ", ".join(self.exported)
            raise NotFound(
                f"{self.name} has no encoder {encoder!r}", where=self.name,
                remedy=f"Use one of: {known}.",
            )  # fmt: skip
        return self.exported[encoder]


def side_of(workspace: Workspace, word: str) -> Side:
    """`service:version`, `service@alias`, or the path of a pipeline file, which is exported.

    Raises:
        BadInput: none of these.  NotFound: no such version, alias or file.
    """
    if word.endswith(_FILES) or Path(word).is_file():
        return side_of_file(workspace, Path(word))
    service, at, alias = word.partition("@")
    if at and service and alias:
        version = workspace.registry.alias(service, alias)
        if version is None:
            raise NotFound(
                f"{service} has no version called {alias}", where=word,
                remedy=f"Look at them: modalgate review list {service}",
            )  # fmt: skip
        return side_of_version(workspace, version, ROLES.get(alias, Role.KNOWN))
    service, colon, number = word.partition(":")
    if colon and service and number:
        version = workspace.registry.version(service, number)
        roles = [ROLES[alias] for alias in version.aliases if alias in ROLES]
        return side_of_version(workspace, version, roles[0] if roles else Role.KNOWN)
    raise BadInput(
        f"{word!r} names nothing to compare", where=word,
        remedy="Write service:version, service@champion, or the path of a pipeline file.",
    )  # fmt: skip


def side_of_version(workspace: Workspace, version: ModelVersion, role: Role) -> Side:
    """A registered release, from its record."""
    record = record_of(workspace, version.bundle)
    bundle = find(workspace, version.bundle)
    pipeline = load(Pipeline, workspace.store.get(record.pipeline), where=record.pipeline)
    return Side(
        name=f"{version.model}:{version.version}",
        role=role,
        pipeline=pipeline,
        base=workspace.home.folder(),
        exported={
            item.contract.name: Exported(item.contract, item.onnx) for item in bundle.encoders
        },
        engines={item.encoder: item for item in bundle.engines if item.deploy},
        bundle=bundle,
        dataset=record.dataset,
    )


def side_of_file(workspace: Workspace, path: Path) -> Side:
    """A pipeline file as it stands: its encoders exported, nothing built yet."""
    pipeline = read_pipeline(path)
    run = release_of(workspace, pipeline, path.resolve().parent)
    exported = {}
    for entry in pipeline.encoders:
        exported[entry.name] = export.fn(run, entry)
    folder = path.resolve().parent
    name = f"{folder.name}/{path.name}"
    return Side(name, Role.CANDIDATE, pipeline, folder, exported, {})


def release_of(workspace: Workspace, pipeline: Pipeline, base: Path) -> Release:
    """A run that is never finished: it lends its steps."""
    options = ReleaseOptions(actor(), deploy=False)
    return Release(workspace, pipeline, base, options, Journal(workspace.store))


def with_engine(workspace: Workspace, side: Side, encoder: str) -> Side:
    """The side with the engine that would serve this encoder, built and verified where it is not.

    Raises:
        Blocked, Undecided: it does not agree with its source model.
        As `EngineWorkshop.obtain` and `verify` do.
    """
    if encoder in side.engines:
        return side
    engine = _build(workspace, side, side.pipeline.encoder(encoder))
    return dataclasses.replace(side, engines={**side.engines, encoder: engine})


def _build(workspace: Workspace, side: Side, entry: EncoderEntry) -> BundledEngine:
    """The engine of an encoder that was never released.

    A precision that is baked into the model needs calibration data that went through the gates;
    such a file is compared in fp32, and the release compares what it will really serve.
    """
    reporter().started(f"engine {entry.name}", side.name)
    plan, found = side.pipeline.deploy_backend, side.exported[entry.name]
    wanted = plan.precision or entry.precision
    precision = Precision.FP32 if needs_baking(plan.backend, wanted) else wanted
    spec = specify(found.contract, found.onnx, plan.backend, precision, entry.profiles)
    workshop = workspace.workshop
    built = workshop.obtain(spec, found.onnx, found.contract, cancel=told_to_end)
    verified = workshop.verify(
        built, found.contract, entry.source, side.base, cancel=told_to_end,
        tolerance=side.pipeline.gates.tolerance(precision),
    )  # fmt: skip
    if verified.engine is None:
        require_pass(verified.verdict, GatePolicy())
    engine = verified.engine or built
    how = "found" if built.cached else "built"
    if precision is not wanted:
        how += f" in {precision.value}: {wanted.value} is made from a release's own data"
    reporter().finished(f"engine {entry.name}", how)
    return bundled_engine(engine, deploy=True)
