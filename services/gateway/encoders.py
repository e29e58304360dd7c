"""One encoder of a revision: preprocessing, and an engine that may be replaced while it serves."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from services.engines.elastic.engine import ElasticEngine, FileShape
from services.engines.elastic.filing import BackgroundFiling
from services.engines.elastic.plan import ElasticPolicy
from services.engines.elastic.replacement import require_replacement
from services.engines.elastic.warming import warm
from services.engines.profiles.assign import Sizes
from services.gateway.folder import BundleFolder
from validators.contracts.builds import ShapeRequest
from validators.contracts.bundle import BundledEngine
from validators.contracts.digest import Digest
from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.engine import EngineState
from validators.contracts.errors import ModalgateError, Refused
from validators.contracts.origin import VectorOrigin
from validators.contracts.pipeline import AdapterEntry
from validators.contracts.ports import RunningEngine, Tensors, Verifier

Array = npt.NDArray[Any]
ReadAsset = Callable[[Digest], bytes]
Preprocess = Callable[[Any], Mapping[str, Array]]
Adapter = Callable[[Array], npt.NDArray[np.float32]]
Transcribe = Callable[[Tensors, Callable[[], None]], str]
"""Speech features by name, and a call between steps that raises when time is up → text."""

SealedEngine = tuple[bytes, Path]
"""A sealed manifest's document, and the engine's file."""

CountShape = Callable[[str, str], None]
"""Encoder, and what became of a shape that no profile covered."""

_log = logging.getLogger(__name__)


def _nothing(revision: str, encoder: str) -> SealedEngine | None:
    return None


@dataclass(frozen=True, slots=True)
class Loaders:
    """How the parts of a bundle are brought to life: the wiring decides, tests put their own.

    find_replacement   the engine that lies beside the bundle's for (revision, encoder), if any
    filing             where shapes that no profile covers are asked for; None: nowhere
    """

    verifier: Verifier
    load_engine: Callable[[bytes, Path], RunningEngine]  # sealed manifest, engine file
    make_preprocessor: Callable[[PreprocessSpec, ReadAsset], Preprocess]
    load_adapter: Callable[[AdapterEntry, bytes | None], Adapter]
    make_transcriber: Callable[[EncoderContract, RunningEngine, ReadAsset], Transcribe]
    warm: Callable[[RunningEngine], None] = warm
    find_replacement: Callable[[str, str], SealedEngine | None] = _nothing
    filing: BackgroundFiling | None = None


@dataclass(frozen=True, slots=True)
class LoadedEncoder:
    """An engine with its contract. A decoder is fed by its branch: it has no preprocessing."""

    contract: EncoderContract
    fingerprint: Digest
    engine: ElasticEngine
    preprocess: Preprocess | None

    @property
    def origin(self) -> VectorOrigin:
        """Of the vectors that it gives now."""
        return VectorOrigin(self.fingerprint, self.engine.manifest.engine)


def load_encoder(
    name: str, revision: str, folder: BundleFolder, loaders: Loaders, count_shape: CountShape
) -> LoadedEncoder:
    """The encoder with the bundle's engine, or with the one that has replaced it since; warmed.

    Raises:
        Refused: the bundle's engine does not hold. A replacement that does not is left out.
    """
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
    try:
        _require_same(engine, entry, bundled.onnx)
        elastic = ElasticEngine(
            engine,
            ElasticPolicy(bundled.outside, bounded=bundled.bounded),
            file_shape=_file_shapes(name, folder, loaders.filing),
            told=lambda outcome: count_shape(name, outcome),
        )
        encoder = LoadedEncoder(bundled.contract, bundled.fingerprint, elastic, preprocess)
        if not _restored(encoder, revision, loaders):
            loaders.warm(engine)
    except BaseException:
        engine.close()
        raise
    return encoder


def replace_engine(encoder: LoadedEncoder, sealed: bytes, path: Path, loaders: Loaders) -> None:
    """Load, try, warm and swap in another engine of this encoder. On any error nothing changes.

    Raises:
        Refused: it does not verify, or is no replacement.  Otherwise as `Loaders.load_engine`.
    """
    engine = loaders.load_engine(sealed, path)
    try:
        require_replacement(encoder.engine.manifest, engine.manifest)
        loaders.warm(engine)
        encoder.engine.swap(engine)
    except BaseException:
        engine.close()
        raise


def _restored(encoder: LoadedEncoder, revision: str, loaders: Loaders) -> bool:
    """Whether an engine that had replaced the bundle's before a restart serves again."""
    name = encoder.contract.name
    try:
        found = loaders.find_replacement(revision, name)
        if found is not None:
            replace_engine(encoder, *found, loaders)
    except Exception as error:  # whatever is wrong with it, the bundle's own engine serves
        why = error.what if isinstance(error, ModalgateError) else type(error).__name__
        _log.warning("the engine beside the bundle is left out, %s of %s: %s", name, revision, why)
        return False
    return found is not None


def _require_same(engine: RunningEngine, entry: BundledEngine, onnx: Digest) -> None:
    """A manifest may be sealed and true, and still be another engine's.

    `onnx` is what the encoder's fingerprint is of. An engine with a precision baked in was compiled
    from another file, which its key names; its sealed manifest says what that was baked from.
    """
    manifest = engine.manifest
    seen = (manifest.key, manifest.engine, manifest.spec.encoder, manifest.source)
    if seen != (entry.key, entry.engine, entry.encoder, onnx):
        raise Refused(
            f"the sealed manifest is not that of the engine of {entry.encoder}",
            where=entry.manifest,
            remedy="Release again.",
        )


def _file_shapes(
    name: str, folder: BundleFolder, filing: BackgroundFiling | None
) -> FileShape | None:
    if filing is None:
        return None
    service, digest = folder.bundle.service, folder.bundle.digest

    def file(key: Digest, sizes: Sizes, told: Callable[[str], None]) -> None:
        request = ShapeRequest(service, digest, name, key, sizes)
        filing.file(request, lambda _, outcome: told(outcome))

    return file
