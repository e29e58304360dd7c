"""One release as a graph: pure, from the documents that its record leads to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flows.release.values import ReleaseRecord
from validators.contracts.bundle import Bundle, BundledEncoder, BundledEngine
from validators.contracts.digest import Digest
from validators.contracts.engine import EngineManifest
from validators.contracts.verdict import Verdict
from validators.lineage.graph import Facets, JobRun, Node, NodeKind, NodeName, node_name
from validators.lineage.record import LineageRecord

GATE = "gate"


@dataclass(frozen=True, slots=True)
class Documents:
    """What a release's record leads to. `manifests` are by sealed digest; one may be missing."""

    record: ReleaseRecord
    bundle: Bundle
    lineage: LineageRecord
    verdicts: tuple[Verdict, ...]
    manifests: Mapping[Digest, EngineManifest]


class ReleaseGraph:
    """The things and runs of one release."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._service = documents.bundle.service

    def nodes(self) -> Iterator[Node]:
        yield from self._data()
        for item in self._documents.lineage.checkpoints:
            yield Node(NodeKind.CHECKPOINT, item.source, item.encoder, (("kind", item.kind),))
        for encoder in self._bundle.encoders:
            yield from self._models(encoder)
        for engine in self._bundle.engines:
            yield Node(NodeKind.ENGINE, engine.engine, _engine_label(engine), _facets(engine))
        window = self._documents.record.window
        yield Node(NodeKind.WINDOW, window, "drift reference")
        for asset in self._bundle.assets:
            facets = (("size_bytes", str(asset.size_bytes)),)
            yield Node(NodeKind.ASSET, asset.digest, asset.name, facets)
        facets = (("format", str(self._bundle.format)),)
        yield Node(NodeKind.BUNDLE, self._documents.record.bundle, self._service, facets)

    def runs(self) -> Iterator[JobRun]:
        chain = self._documents.lineage.chain
        if chain is not None:
            source = node_name(NodeKind.SOURCE, chain.source)
            raw = node_name(NodeKind.INGESTED, chain.ingested)
            yield self._run("ingest", [source], [raw])
            yield self._run("deidentify", [raw], [self._dataset])
        yield self._run("privacy", [self._dataset], [self._certificate])
        yield from self._exports()
        yield from self._builds()
        yield self._learn()
        yield self._run("bundle", self._parts(), [self._whole])
        yield from self._gates()

    @property
    def _bundle(self) -> Bundle:
        return self._documents.bundle

    @property
    def _whole(self) -> NodeName:
        return node_name(NodeKind.BUNDLE, self._documents.record.bundle)

    @property
    def _dataset(self) -> NodeName:
        return node_name(NodeKind.DATASET, self._bundle.dataset)

    @property
    def _certificate(self) -> NodeName:
        return node_name(NodeKind.CERTIFICATE, self._bundle.certificate)

    def _data(self) -> Iterator[Node]:
        lineage = self._documents.lineage
        if lineage.chain is not None:
            yield Node(NodeKind.SOURCE, lineage.chain.source, lineage.chain.location)
            yield Node(NodeKind.INGESTED, lineage.chain.ingested, "normalised, in quarantine")
        facets = {
            "samples": str(lineage.summary.samples),
            "modalities": ", ".join(lineage.summary.modalities),
            "document": self._documents.record.dataset,
            "lineage": self._documents.record.lineage,
        }
        if lineage.chain is not None:
            facets["policy"] = lineage.chain.policy
        for item in lineage.preprocessing:
            facets[f"preprocessing.{item.modality}"] = item.digest
        yield Node(
            NodeKind.DATASET, self._bundle.dataset, "de-identified", tuple(sorted(facets.items()))
        )
        yield Node(NodeKind.CERTIFICATE, self._bundle.certificate, "privacy certificate")

    def _models(self, encoder: BundledEncoder) -> Iterator[Node]:
        contract = encoder.contract
        facets = (
            ("contract", contract.digest),
            ("fingerprint", encoder.fingerprint),
            ("licence", contract.licence),
            ("preprocess", contract.preprocess.digest),
        )
        yield Node(NodeKind.ONNX, encoder.onnx, f"{contract.name} {contract.version}", facets)
        for engine in self._engines(contract.name):
            manifest = self._documents.manifests.get(engine.manifest)
            if manifest is not None and manifest.spec.onnx != encoder.onnx:
                label = f"{contract.name} {contract.version} in {engine.precision.value}"
                yield Node(NodeKind.ONNX, manifest.spec.onnx, label)

    def _exports(self) -> Iterator[JobRun]:
        onnx = {item.contract.name: item.onnx for item in self._bundle.encoders}
        for item in self._documents.lineage.checkpoints:
            if item.encoder in onnx:
                made = node_name(NodeKind.ONNX, onnx[item.encoder])
                source = node_name(NodeKind.CHECKPOINT, item.source)
                yield self._run(f"export {item.encoder}", [source], [made])

    def _builds(self) -> Iterator[JobRun]:
        for encoder in self._bundle.encoders:
            source = node_name(NodeKind.ONNX, encoder.onnx)
            for engine in self._engines(encoder.contract.name):
                manifest = self._documents.manifests.get(engine.manifest)
                if manifest is None:
                    continue
                compiled = node_name(NodeKind.ONNX, manifest.spec.onnx)
                if compiled != source:
                    job = f"bake {engine.encoder} {engine.precision.value}"
                    yield self._run(job, [source, self._dataset], [compiled])
                made = node_name(NodeKind.ENGINE, engine.engine)
                yield self._run(f"build {_engine_label(engine)}", [compiled], [made])

    def _learn(self) -> JobRun:
        deployed = [_engine(item) for item in self._bundle.engines if item.deploy]
        made = [node_name(NodeKind.WINDOW, self._documents.record.window), *self._assets()]
        return self._run("learn", [self._dataset, *deployed], made)

    def _parts(self) -> list[NodeName]:
        engines = [_engine(item) for item in self._bundle.engines]
        return [self._dataset, self._certificate, *engines, *self._assets()]

    def _assets(self) -> list[NodeName]:
        return [node_name(NodeKind.ASSET, asset.digest) for asset in self._bundle.assets]

    def _gates(self) -> Iterator[JobRun]:
        window = node_name(NodeKind.WINDOW, self._documents.record.window)
        engines = [_engine(item) for item in self._bundle.engines]
        chain = self._documents.lineage.chain
        raw = [node_name(NodeKind.INGESTED, chain.ingested)] if chain is not None else []
        judged: Mapping[str, Sequence[NodeName]] = {
            "contracts": [],
            "ingest": raw,
            "parity": engines,
            "precision": engines,
            "recall": self._assets(),
            "drift": [window],
            "compatibility": engines,
            "rehearsal": [*engines, *self._assets()],
        }
        for verdict in self._documents.verdicts:
            inputs = judged.get(verdict.gate, [self._dataset])
            yield self._run(f"{GATE} {verdict.gate}", inputs, [], verdict)

    def _engines(self, encoder: str) -> Iterator[BundledEngine]:
        return (item for item in self._bundle.engines if item.encoder == encoder)

    def _run(
        self,
        job: str,
        inputs: Sequence[NodeName],
        outputs: Sequence[NodeName],
        verdict: Verdict | None = None,
    ) -> JobRun:
        distinct = tuple(dict.fromkeys(inputs)), tuple(dict.fromkeys(outputs))
        return JobRun(self._service, job, *distinct, verdict)


def _engine(engine: BundledEngine) -> NodeName:
    return node_name(NodeKind.ENGINE, engine.engine)


def _engine_label(engine: BundledEngine) -> str:
    return f"{engine.encoder} by {engine.backend} for {engine.target.name}"


def _facets(engine: BundledEngine) -> Facets:
    return (
        ("backend", engine.backend),
        ("deploy", "yes" if engine.deploy else "no"),
        ("key", engine.key),
        ("manifest", engine.manifest),
        ("precision", engine.precision.value),
        ("state", engine.state.value),
        ("target", engine.target.name),
    )
