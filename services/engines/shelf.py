"""Where engines lie in the store, and when what lies there may be used."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from services.engines.manifest import open_manifest, seal_manifest
from validators.contracts.digest import Digest, digest_chunks, digest_value, hex_of
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import EngineManifest, EngineSpec, EngineState, HostIdentity
from validators.contracts.errors import Conflict, NotFound, Refused
from validators.contracts.ports import ObjectStore, Signer, Verifier
from validators.contracts.tensors import TensorSpec

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ObtainedEngine:
    """An engine in the store. `cached`: it was there before."""

    manifest: EngineManifest
    sealed: bytes  # the sealed manifest's document
    sealed_digest: Digest
    cached: bool


@dataclass(frozen=True, slots=True)
class Description:
    """What a manifest says beside its key: the contract's tensors, and the model behind a bake."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    source_onnx: Digest | None = None  # None where the spec's ONNX is the encoder's own

    @staticmethod
    def of(
        contract: EncoderContract, spec: EngineSpec, source_onnx: Digest | None = None
    ) -> Description:
        baked_from = None if source_onnx == spec.onnx else source_onnx
        return Description(contract.inputs, contract.outputs, baked_from)


@dataclass(frozen=True, slots=True)
class Shelf:
    """The store seen as engines by key. Reads are trusted only as far as signatures reach."""

    store: ObjectStore
    signer: Signer
    verifier: Verifier

    def built(self, spec: EngineSpec, about: Description) -> ObtainedEngine | None:
        """The build of this spec, if there is one and it is whole.

        The key does not hold the contract's ranges and meanings, nor what its ONNX was baked from:
        where only those changed, the same bytes get a new manifest instead of a new build.
        """
        found = self._read(_built_name(spec.key))
        if found is None or found.manifest.spec != spec:
            return None
        if not self._whole(found.manifest.engine):
            self.store.delete(found.manifest.engine)  # else putting it again would change nothing
            return None
        return found if _described(found) == about else self._renew(found, about)

    def keep_built(self, manifest: EngineManifest, about: Description) -> ObtainedEngine:
        """Seal and name a build; where another builder of this store was first, theirs."""
        try:
            return self._keep(_built_name(manifest.key), manifest, cached=False)
        except Conflict:
            theirs = self.built(manifest.spec, about)
            if theirs is None:
                raise
            return theirs

    def verified(self, built: EngineManifest, host: HostIdentity) -> ObtainedEngine | None:
        """The verified manifest of exactly this build on this host, if there is one."""
        found = self._read(_verified_name(built.key, host))
        if found is None or found.manifest.state is not EngineState.VERIFIED:
            return None
        same = all(
            getattr(found.manifest, part) == getattr(built, part)
            for part in ("engine", "spec", "inputs", "outputs", "source_onnx")
        )
        return found if same and found.manifest.verified_on == host else None

    def keep_verified(self, manifest: EngineManifest, host: HostIdentity) -> ObtainedEngine:
        """Seal and name a verified build; where another release was first, theirs.

        Raises:
            Conflict: what the other release verified is not exactly this build.
        """
        try:
            return self._keep(_verified_name(manifest.key, host), manifest, cached=False)
        except Conflict:
            theirs = self.verified(manifest, host)
            if theirs is None:
                raise
            return theirs

    def _renew(self, found: ObtainedEngine, about: Description) -> ObtainedEngine:
        """The same build under this description; where another release renewed it so, theirs."""
        name = _built_name(found.manifest.key)
        renewed = dataclasses.replace(
            found.manifest,
            inputs=about.inputs,
            outputs=about.outputs,
            source_onnx=about.source_onnx,
        )
        try:
            return self._keep(name, renewed, cached=True)
        except Conflict:
            theirs = self._read(name)
            if theirs is None or theirs.manifest != renewed:
                raise
            return theirs

    def _read(self, name: str) -> ObtainedEngine | None:
        """None where nothing is named, or what is named is gone, changed or not signed by us."""
        digest = self.store.reference(name)
        if digest is None:
            return None
        try:
            sealed = self.store.get(digest)
            return ObtainedEngine(open_manifest(sealed, self.verifier), sealed, digest, cached=True)
        except (NotFound, Refused):
            return None

    def _keep(self, name: str, manifest: EngineManifest, *, cached: bool) -> ObtainedEngine:
        before = self.store.reference(name)
        sealed = seal_manifest(manifest, self.signer)
        digest = self.store.put(sealed)
        if before != digest:
            self.store.set_reference(name, digest, expected=before)
        return ObtainedEngine(manifest, sealed, digest, cached)

    def _whole(self, engine: Digest) -> bool:
        if not self.store.contains(engine):
            return False
        with self.store.open(engine) as stream:

            def chunks() -> Iterator[bytes]:
                while chunk := stream.read(_CHUNK_BYTES):
                    yield chunk

            return digest_chunks(chunks()) == engine


def _described(found: ObtainedEngine) -> Description:
    manifest = found.manifest
    return Description(manifest.inputs, manifest.outputs, manifest.source_onnx)


def _built_name(key: Digest) -> str:
    return f"engines/{hex_of(key)}"


def _verified_name(key: Digest, host: HostIdentity) -> str:
    return f"engines-verified/{hex_of(key)}/{hex_of(digest_value('host', host))}"
