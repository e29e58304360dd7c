"""One bundle, loaded: engines, preprocessing, adapters, catalogue. Immutable once it serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from services.gateway.catalogue import Catalogue
from services.gateway.folder import BundleFolder, open_folder
from validators.contracts.bundle import Bundle, BundledEngine
from validators.contracts.digest import Digest
from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.engine import EngineState
from validators.contracts.errors import ModalgateError, NotFound, Refused, Unsupported
from validators.contracts.pipeline import AdapterEntry, Branch
from validators.contracts.ports import RunningEngine, Tensors, Verifier

Array = npt.NDArray[Any]
ReadAsset = Callable[[Digest], bytes]
Preprocess = Callable[[Any], Mapping[str, Array]]
Adapter = Callable[[Array], npt.NDArray[np.float32]]
Transcribe = Callable[[Tensors, Callable[[], None]], str]
"""Speech features by name, and a call between steps that raises when time is up → text."""

ANSWER_KINDS = ("retrieval", "embedding")


@dataclass(frozen=True, slots=True)
class Loaders:
    """How the parts of a bundle are brought to life: the wiring decides, tests put their own."""

    verifier: Verifier
    load_engine: Callable[[bytes, Path], RunningEngine]  # sealed manifest, engine file
    make_preprocessor: Callable[[PreprocessSpec, ReadAsset], Preprocess]
    load_adapter: Callable[[AdapterEntry, bytes | None], Adapter]
    make_transcriber: Callable[[EncoderContract, RunningEngine, ReadAsset], Transcribe]


@dataclass(frozen=True, slots=True)
class LoadedEncoder:
    """An engine with its contract. A decoder is fed by its branch: it has no preprocessing."""

    contract: EncoderContract
    fingerprint: Digest
    engine: RunningEngine
    preprocess: Preprocess | None


@dataclass(frozen=True, slots=True)
class LoadedBranch:
    """A branch with its parts. Either `adapter`, or `transcribe` and the branch `then`."""

    branch: Branch
    adapter: Adapter | None = None
    transcribe: Transcribe | None = None


@dataclass(frozen=True, slots=True)
class LoadedRevision:
    """A bundle that can serve. `name` is the revision's; `digest` the bundle's."""

    name: str
    digest: Digest
    bundle: Bundle
    encoders: Mapping[str, LoadedEncoder]
    branches: Mapping[str, LoadedBranch]
    catalogue: Catalogue | None

    def encoder(self, name: str) -> LoadedEncoder:
        if name not in self.encoders:
            raise NotFound(
                f"revision {self.name} serves no model {name[:80]!r}",
                remedy=f"Use one of: {', '.join([self.bundle.service, *self.encoders])}.",
            )
        return self.encoders[name]

    def close(self) -> None:
        """Free the engines. Nothing may be running."""
        for encoder in self.encoders.values():
            encoder.engine.close()


def load_revision(
    name: str, path: Path, loaders: Loaders, expected: Digest | None = None
) -> LoadedRevision:
    """The revision in a materialised bundle folder, every part of it checked.

    Raises:
        Refused: a signature, digest, state or host does not hold.
        NotFound: something is missing.  Unsupported: a policy or answer that is not served here.
    """
    folder = open_folder(path, loaders.verifier, expected)
    bundle = folder.bundle
    if bundle.answer.kind not in ANSWER_KINDS:
        raise Unsupported(f"there is no answer of kind {bundle.answer.kind!r}", where="answer.kind")
    catalogue = folder.read_catalogue()
    if bundle.answer.kind == "retrieval" and catalogue is None:
        raise NotFound("the bundle retrieves and has no catalogue", where=bundle.digest)
    encoders: dict[str, LoadedEncoder] = {}
    try:
        for item in bundle.encoders:
            encoders[item.contract.name] = _load_encoder(item.contract.name, folder, loaders)
        branches = {
            branch.modality: _load_branch(branch, folder, encoders, loaders)
            for branch in bundle.branches
        }
        _require_joined(branches)
    except ModalgateError:
        for encoder in encoders.values():
            encoder.engine.close()
        raise
    return LoadedRevision(name, bundle.digest, bundle, encoders, branches, catalogue)


def _load_encoder(name: str, folder: BundleFolder, loaders: Loaders) -> LoadedEncoder:
    bundled = folder.bundle.encoder(name)
    entry = folder.bundle.deployed_engine(name)
    if entry.state is not EngineState.VERIFIED:
        raise Refused(
            f"the engine of {name} is {entry.state.value}, not VERIFIED",
            where=entry.key,
            remedy="Verify it on this kind of host, then release again.",
        )
    preprocess = None
    if any(name == branch.encoder for branch in folder.bundle.branches):
        preprocess = loaders.make_preprocessor(bundled.contract.preprocess, folder.read)
    engine = loaders.load_engine(folder.read(entry.manifest), folder.file(entry.engine))
    _require_same(engine, entry, bundled.onnx)
    return LoadedEncoder(bundled.contract, bundled.fingerprint, engine, preprocess)


def _require_same(engine: RunningEngine, entry: BundledEngine, onnx: Digest) -> None:
    """A manifest may be sealed and true, and still be another engine's.

    `onnx` is what the encoder's fingerprint is of. An engine with a precision baked in was compiled
    from another file, which its key names; its sealed manifest says what that was baked from.
    """
    manifest = engine.manifest
    seen = (manifest.key, manifest.engine, manifest.spec.encoder, manifest.source)
    if seen != (entry.key, entry.engine, entry.encoder, onnx):
        engine.close()
        raise Refused(
            f"the sealed manifest is not that of the engine of {entry.encoder}",
            where=entry.manifest,
            remedy="Release again.",
        )


def _load_branch(
    branch: Branch, folder: BundleFolder, encoders: Mapping[str, LoadedEncoder], loaders: Loaders
) -> LoadedBranch:
    if branch.adapter is not None:
        encoders[branch.encoder].contract.output(branch.adapter.output)
        data = folder.find_asset(f"adapter-{branch.modality}.safetensors")
        return LoadedBranch(branch, adapter=loaders.load_adapter(branch.adapter, data))
    if branch.decoder is None or branch.then is None:
        raise Unsupported(
            f"the branch {branch.modality} has neither an adapter nor a decoder to go on with",
            where=f"branches.{branch.modality}",
            remedy="Give it an adapter into the common space.",
        )
    decoder = encoders[branch.decoder]
    transcribe = loaders.make_transcriber(decoder.contract, decoder.engine, folder.read)
    return LoadedBranch(branch, transcribe=transcribe)


def _require_joined(branches: Mapping[str, LoadedBranch]) -> None:
    """All adapters lead into one space, and `then` names a branch that has one."""
    spaces = {b.branch.adapter.space for b in branches.values() if b.branch.adapter is not None}
    if len(spaces) != 1:
        raise Unsupported(
            f"the branches lead into {len(spaces)} spaces: {', '.join(sorted(spaces))}",
            where="branches",
            remedy="Give every branch an adapter into the same space.",
        )
    for name, loaded in branches.items():
        then = loaded.branch.then
        if then is not None and (then not in branches or branches[then].adapter is None):
            raise Unsupported(
                f"the branch {name} goes on with {then!r}, which has no adapter",
                where=f"branches.{name}.then",
            )
