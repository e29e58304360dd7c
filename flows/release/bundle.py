"""The bundle: composed from what passed, signed, and laid out where a host can serve it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prefect import task

from flows.progress import reporter
from flows.release.run import STEP, Release
from flows.release.values import Exported, Learned
from flows.workspace import Workspace
from validators.contracts.bundle import BUNDLE_FORMAT, Bundle, BundledAsset, BundledEncoder
from validators.contracts.deployment import Revision
from validators.contracts.digest import Digest, canonical_json, digest_bytes, hex_of, short
from validators.contracts.documents import load
from validators.contracts.encoder import encoder_fingerprint
from validators.contracts.errors import NotFound
from validators.contracts.pipeline import EncoderEntry


@dataclass(frozen=True, slots=True)
class Parts:
    """What a bundle is made of."""

    exported: Mapping[str, Exported]
    learned: Learned
    dataset: Digest
    certificate: Digest
    assets: tuple[BundledAsset, ...] = ()


@task(name="bundle", **STEP)
def compose(release: Release, parts: Parts) -> Bundle:
    """The signed bundle over everything found so far, in the store."""
    reporter().started("bundle")
    bundle = draft(release, parts)
    release.workspace.store.put(release.verdict_document())
    keep(release.workspace, bundle)
    reporter().finished("bundle", short(bundle.digest))
    return bundle


def draft(release: Release, parts: Parts) -> Bundle:
    """The bundle as it would be now; nothing is stored."""
    pipeline = release.pipeline
    return Bundle(
        format=BUNDLE_FORMAT,
        service=pipeline.service,
        slo=pipeline.slo,
        encoders=tuple(
            _bundled(item, pipeline.encoder(item.contract.name)) for item in parts.exported.values()
        ),
        branches=parts.learned.branches,
        fusion=pipeline.fusion,
        answer=pipeline.answer,
        engines=tuple(build.engine for build in release.engines),
        assets=parts.learned.assets + parts.assets,
        dataset=parts.dataset,
        certificate=parts.certificate,
        verdicts=digest_bytes(release.verdict_document()),
    )


def _bundled(exported: Exported, entry: EncoderEntry) -> BundledEncoder:
    contract, onnx = exported.contract, exported.onnx
    fingerprint = encoder_fingerprint(contract, onnx)
    bounded = entry.auto is not None
    return BundledEncoder(contract, onnx, fingerprint, entry.outside, bounded)


def keep(workspace: Workspace, bundle: Bundle) -> None:
    """The bundle's document and signature in the store; the reference comes last."""
    store = workspace.store
    store.put(bundle.document())
    name, digest = _signature_reference(bundle.digest), store.put(sign(workspace, bundle))
    seen = store.reference(name)
    if seen != digest:
        store.set_reference(name, digest, expected=seen)


def sign(workspace: Workspace, bundle: Bundle) -> bytes:
    """This machine's signature over a bundle, as its document."""
    return canonical_json(workspace.signer.sign(bundle.document()))


def find(workspace: Workspace, digest: Digest) -> Bundle:
    """A bundle of the store. Raises NotFound."""
    return load(Bundle, workspace.store.get(digest), where=digest)


def revision_of(workspace: Workspace, bundle: Bundle) -> Revision:
    """What a deployment target is asked to serve: a kept bundle under the signature it has."""
    signature = workspace.store.reference(_signature_reference(bundle.digest))
    if signature is None:
        raise NotFound(
            f"the store has no signature of bundle {short(bundle.digest)}",
            where=_signature_reference(bundle.digest),
            remedy="Point MODALGATE_STORE at the store that the release was made with.",
        )
    root = workspace.home.folder("bundles")
    return materialise(workspace, bundle, workspace.store.get(signature), root)


def materialise(workspace: Workspace, bundle: Bundle, signature: bytes, root: Path) -> Revision:
    """The bundle as a folder below `root`, named by its digest; whole or absent.

    A folder that is there already is taken as it is: its readers check every byte.
    """
    folder = root / hex_of(bundle.digest)
    if not folder.is_dir():
        _lay_out(workspace, bundle, signature, folder)
    return Revision(bundle.service, short(bundle.digest), bundle.digest, str(folder))


def _lay_out(workspace: Workspace, bundle: Bundle, signature: bytes, folder: Path) -> None:
    unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    objects = unfinished / "objects"
    objects.mkdir(parents=True, mode=0o700)
    for digest in sorted(bundle.objects()):
        workspace.store.fetch(digest, objects / hex_of(digest))
    (unfinished / "bundle.sig.json").write_bytes(signature)
    (unfinished / "bundle.json").write_bytes(bundle.document())
    try:
        unfinished.rename(folder)
    except OSError:  # another process was first: its folder is as good
        shutil.rmtree(unfinished, ignore_errors=True)


def _signature_reference(bundle: Digest) -> str:
    return f"bundles/{hex_of(bundle)}"
