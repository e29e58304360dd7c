"""The sealed manifest: what is known of one engine build, under a signature."""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.engine import EngineManifest
from validators.contracts.errors import Refused
from validators.contracts.ports import Signature, Signer, Verifier


@dataclass(frozen=True, slots=True)
class SealedManifest:
    """The document that travels with an engine's bytes."""

    manifest: EngineManifest
    signature: Signature


def signed_payload(manifest: EngineManifest) -> bytes:
    """What the signature covers. The kind keeps it from passing for another signed document."""
    return canonical_json({"kind": "engine-manifest", "value": manifest})


def seal_manifest(manifest: EngineManifest, signer: Signer) -> bytes:
    """The sealed document's bytes."""
    signature = signer.sign(signed_payload(manifest))
    return canonical_json(SealedManifest(manifest, signature))


def open_manifest(sealed: bytes, verifier: Verifier) -> EngineManifest:
    """The manifest, once its signature and its own key hold.

    Raises:
        Refused: not such a document, not signed by a trusted key over this content, or a key that
            its spec does not have.
    """
    document = load(SealedManifest, sealed, where="engine manifest")
    manifest = document.manifest
    verifier.verify(signed_payload(manifest), document.signature)
    if manifest.key != manifest.spec.key:
        raise Refused(
            "the manifest names another engine's key than its own spec has",
            where=manifest.spec.encoder,
            remedy="Build the engine again: this manifest was put together from two.",
        )
    return manifest
