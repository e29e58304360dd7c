"""The chosen adapter as an engine: exported, compiled, verified, and measured as it will run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.children.process import Cancel
from services.children.scratch import scratch
from services.compatibility.adapters.applying import apply_adapter
from services.compatibility.adapters.fitting import FittedAdapters
from services.compatibility.adapters.graph import INPUT, OUTPUT
from services.compatibility.adapters.measure import Described, measure_adapter
from services.compatibility.adapters.pairs import AdapterPairs, questions_of, split_pairs
from services.engines.export.encoder import export_encoder
from services.engines.load import load_engine
from services.engines.shelf import ObtainedEngine
from services.engines.specs import specify
from services.engines.workshop import EngineWorkshop
from validators.compatibility.adapters import AdapterMeasurement, AdapterRecord
from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.engine import Precision, ShapeProfile, ShapeRange
from validators.contracts.errors import BadInput
from validators.contracts.origin import VectorOrigin
from validators.contracts.pipeline import EncoderEntry, EncoderSource, SourceKind
from validators.contracts.ports import ObjectStore, Tensors, Verifier
from validators.contracts.tensors import DType, Meaning, TensorSpec
from validators.contracts.verdict import GatePolicy, require_pass

MAX_BATCH = 64
_REAL_INPUTS = 8
_MODEL = "adapter.onnx"


@dataclass(frozen=True, slots=True)
class Side:
    """One version of the encoder, and which of its engines made the vectors."""

    contract: EncoderContract
    origin: VectorOrigin


@dataclass(frozen=True, slots=True)
class VersionPair:
    """Between what the adapter goes: from `new` to `old`, one embedding `output` of both."""

    old: Side
    new: Side
    output: str


@dataclass(frozen=True, slots=True)
class Bench:
    """Where engines are made and kept. `workdir` is a folder of this machine."""

    workshop: EngineWorkshop
    store: ObjectStore
    verifier: Verifier
    workdir: Path
    backend: str


def build_adapter(
    bench: Bench,
    versions: VersionPair,
    fitted: FittedAdapters,
    pairs: AdapterPairs,
    *,
    seed: int = 0,
    cancel: Cancel | None = None,
) -> AdapterRecord:
    """The chosen candidate as a VERIFIED engine, with what that engine does on held-out pairs.

    `pairs` and `seed` are those of the fit, so that the held-out items are the same.

    Raises:
        BadInput: no candidate was chosen, or the pairs are not of these contracts.
        Blocked, Undecided: the engine's answers are not the map's.
        Unavailable, or an error of `services.children.errors`: as `EngineWorkshop` raises.
    """
    chosen = fitted.choice.chosen
    if chosen is None:
        raise BadInput(f"there is no adapter to build: {fitted.choice.reason}", where="adapter")
    sound = pairs.sound()
    contract = adapter_contract(versions)
    wide, narrow = sound.new.shape[1], sound.old.shape[1]
    entry = _entry(contract, wide)
    with scratch(bench.workdir) as folder:
        (folder / _MODEL).write_bytes(fitted.models[chosen.kind])
        checked = export_encoder(entry, folder, folder, cancel=cancel)
        onnx = bench.store.put_file(checked)
        spec = specify(contract, onnx, bench.backend, entry.precision, entry.profiles)
        built = bench.workshop.obtain(spec, onnx, contract, cancel=cancel)
        verified = bench.workshop.verify(
            built, contract, entry.source, folder, real_inputs=_real(sound, seed), cancel=cancel
        )
        require_pass(verified.verdict, GatePolicy())
        engine = verified.engine or built
    described = Described(chosen.kind, chosen.parameters, chosen.detail)
    measured = _measure(bench, engine, described, sound, seed)
    manifest = engine.manifest
    return AdapterRecord(
        encoder=versions.old.contract.name,
        output=versions.output,
        old=versions.old.origin,
        new=versions.new.origin,
        old_dim=narrow,
        new_dim=wide,
        measured=measured,
        refused=tuple(item for item in fitted.measured if item.kind is not chosen.kind),
        onnx=onnx,
        engine_key=manifest.key,
        engine=manifest.engine,
        manifest=engine.sealed_digest,
    )


def adapter_contract(versions: VersionPair) -> EncoderContract:
    """`vector` in the new version's space → `adapted`, of length one, in the old version's.

    Raises:
        NotFound: a version without this output.  BadInput: it is no embedding of a fixed width.
    """
    old = _embedding(versions.old.contract, versions.output)
    new = _embedding(versions.new.contract, versions.output)
    meaning = Meaning.GLOBAL_EMBEDDING
    return EncoderContract(
        name=f"{versions.old.contract.name}-adapter",
        version=f"{versions.new.contract.version}-to-{versions.old.contract.version}",
        modality=versions.old.contract.modality,
        inputs=(TensorSpec(INPUT, DType.FP32, ("batch", new.shape[1]), meaning, space=new.space),),
        outputs=(
            TensorSpec(OUTPUT, DType.FP32, ("batch", old.shape[1]), meaning, space=old.space),
        ),
        preprocess=PreprocessSpec("tensor", (("dtype", "FP32"), ("tensor", INPUT))),
    )


def _embedding(contract: EncoderContract, output: str) -> TensorSpec:
    spec = contract.output(output)
    if (
        spec.meaning is not Meaning.GLOBAL_EMBEDDING
        or len(spec.shape) != 2
        or not isinstance(spec.shape[1], int)
    ):
        raise BadInput(
            "only an embedding of a fixed width can be adapted",
            where=spec.describe(),
            remedy="Name an output [batch, D] with meaning global_embedding.",
        )
    return spec


def _entry(contract: EncoderContract, wide: int) -> EncoderEntry:
    span = ShapeRange(INPUT, (1, wide), (1, wide), (MAX_BATCH, wide))
    source = EncoderSource(SourceKind.ONNX, _MODEL)
    return EncoderEntry(contract, source, Precision.FP32, (ShapeProfile((span,)),))


def _real(pairs: AdapterPairs, seed: int) -> list[Tensors]:
    """Held-out vectors, beside the seeded inputs of every verification."""
    split = split_pairs(pairs, seed)
    asking = questions_of(split.held_out, split.held_out).asking[:_REAL_INPUTS]
    return [{INPUT: row[None].astype("float32")} for row in asking]


def _measure(
    bench: Bench,
    engine: ObtainedEngine,
    described: Described,
    pairs: AdapterPairs,
    seed: int,
) -> AdapterMeasurement:
    with scratch(bench.workdir) as folder:
        path = folder / "engine"
        bench.store.fetch(engine.manifest.engine, path)
        running = load_engine(engine.sealed, path, verifier=bench.verifier)
        try:
            return measure_adapter(
                described,
                lambda rows: apply_adapter(running, rows),
                pairs,
                split_pairs(pairs, seed),
            )
        finally:
            running.close()
