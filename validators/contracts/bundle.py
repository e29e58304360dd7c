"""A bundle: what a release produces, as one digest-named, signed document that points to objects.

Materialised on disk it is a folder:

    bundle.json            the canonical document; its digest is the bundle's name
    bundle.sig.json        the signature over bundle.json
    objects/<hex digest>   every object it points to

The approval of a review is bound to the bundle's digest, and so is the deployed revision.
"""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts.digest import Digest, canonical_json, digest_bytes
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import EngineState, HostIdentity, Outside, Precision
from validators.contracts.errors import NotFound
from validators.contracts.pipeline import Answer, Branch, Fusion
from validators.contracts.slo import Slo

BUNDLE_FORMAT = 3


@dataclass(frozen=True, slots=True)
class BundledEngine:
    """One engine of the bundle. Only a VERIFIED engine marked `deploy` is ever loaded."""

    encoder: str
    backend: str
    target: HostIdentity
    precision: Precision
    state: EngineState
    deploy: bool
    key: Digest
    engine: Digest
    manifest: Digest  # of the sealed manifest document


@dataclass(frozen=True, slots=True)
class BundledEncoder:
    contract: EncoderContract  # with asset digests filled in
    onnx: Digest
    fingerprint: Digest
    outside: tuple[Outside, ...] = (Outside.PAD, Outside.SPLIT)
    bounded: bool = False  # planned profiles: nothing beyond them is ever built


@dataclass(frozen=True, slots=True)
class BundledAsset:
    """A file that serving needs: tokenizer, adapter, catalogue. Never a pickle."""

    name: str  # "catalogue.safetensors", "adapter-image.safetensors"
    digest: Digest
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """The document itself. No time stamp and no host path: the same inputs give the same digest."""

    format: int
    service: str
    slo: Slo
    encoders: tuple[BundledEncoder, ...]
    branches: tuple[Branch, ...]
    fusion: Fusion
    answer: Answer
    engines: tuple[BundledEngine, ...]
    assets: tuple[BundledAsset, ...]
    dataset: Digest
    certificate: Digest
    verdicts: Digest

    def document(self) -> bytes:
        return canonical_json(self)

    @property
    def digest(self) -> Digest:
        return digest_bytes(self.document())

    def encoder(self, name: str) -> BundledEncoder:
        for item in self.encoders:
            if item.contract.name == name:
                return item
        raise NotFound(f"the bundle has no encoder {name!r}", where=self.digest)

    def deployed_engine(self, encoder: str) -> BundledEngine:
        for item in self.engines:
            if item.encoder == encoder and item.deploy:
                return item
        raise NotFound(f"the bundle has no deployable engine for {encoder!r}", where=self.digest)

    def asset(self, name: str) -> BundledAsset:
        for item in self.assets:
            if item.name == name:
                return item
        raise NotFound(f"the bundle has no asset {name!r}", where=self.digest)

    def objects(self) -> frozenset[Digest]:
        """Every object that a host needs to serve this bundle."""
        wanted = {asset.digest for asset in self.assets}
        for engine in self.engines:
            if engine.deploy:
                wanted |= {engine.engine, engine.manifest}
        for item in self.encoders:
            wanted |= {digest for _, digest in item.contract.preprocess.assets}
        return frozenset(wanted)
