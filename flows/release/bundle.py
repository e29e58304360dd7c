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
from validators.contracts.bundle import BUNDLE_FORMAT, Bundle, BundledEncoder
from validators.contracts.deployment import Revision
from validators.contracts.digest import Digest, canonical_json, hex_of, short
from validators.contracts.documents import load
from validators.contracts.encoder import encoder_fingerprint


@dataclass(frozen=True, slots=True)
class Parts:
    """What a bundle is made of."""

    exported: Mapping[str, Exported]
    learned: Learned
    dataset: Digest
    certificate: Digest


@task(name="bundle", **STEP)
def compose(release: Release, parts: Parts) -> Bundle:
    """The signed bundle over everything found so far, in the store."""
    reporter().started("bundle")
    pipeline, store = release.pipeline, release.workspace.store
    bundle = Bundle(
        format=BUNDLE_FORMAT,
        service=pipeline.service,
        slo=pipeline.slo,
        encoders=tuple(
            BundledEncoder(item.contract, item.onnx, encoder_fingerprint(item.contract, item.onnx))
            for item in parts.exported.values()
        ),
        branches=parts.learned.branches,
        fusion=pipeline.fusion,
        answer=pipeline.answer,
        engines=tuple(build.engine for build in release.engines),
        assets=parts.learned.assets,
        dataset=parts.dataset,
        certificate=parts.certificate,
        verdicts=store.put(release.verdict_document()),
    )
    keep(release.workspace, bundle)
    reporter().finished("bundle", short(bundle.digest))
    return bundle


def keep(workspace: Workspace, bundle: Bundle) -> None:
    """The bundle's document and signature in the store; the reference comes last."""
    store, document = workspace.store, bundle.document()
    signature = canonical_json(workspace.signer.sign(document))
    store.put(document)
    name = signature_reference(bundle.digest)
    seen, digest = store.reference(name), store.put(signature)
    if seen != digest:
        store.set_reference(name, digest, expected=seen)


def signature_reference(bundle: Digest) -> str:
    return f"bundles/{hex_of(bundle)}"


def find(workspace: Workspace, digest: Digest) -> Bundle:
    """A bundle of the store. Raises NotFound."""
    return load(Bundle, workspace.store.get(digest), where=digest)


def materialise(workspace: Workspace, bundle: Bundle, root: Path) -> Path:
    """The bundle as a folder below `root`, named by its digest; whole or absent.

    A folder that is there already is taken as it is: its readers check every byte.
    """
    folder = root / hex_of(bundle.digest)
    if folder.is_dir():
        return folder
    unfinished = root / f".{hex_of(bundle.digest)}.{os.getpid()}"
    shutil.rmtree(unfinished, ignore_errors=True)
    objects = unfinished / "objects"
    objects.mkdir(parents=True, mode=0o700)
    for digest in sorted(bundle.objects()):
        workspace.store.fetch(digest, objects / hex_of(digest))
    signature = workspace.store.reference(signature_reference(bundle.digest))
    if signature is None:
        keep(workspace, bundle)
        signature = workspace.store.reference(signature_reference(bundle.digest))
    assert signature is not None  # noqa: S101 kept just now
    (unfinished / "bundle.sig.json").write_bytes(workspace.store.get(signature))
    (unfinished / "bundle.json").write_bytes(bundle.document())
    try:
        unfinished.rename(folder)
    except OSError:  # another process was first: its folder is as good
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def revision_of(workspace: Workspace, bundle: Bundle, root: Path | None = None) -> Revision:
    """What a deployment target is asked to serve."""
    place = root or workspace.home.folder("bundles")
    folder = materialise(workspace, bundle, place)
    return Revision(bundle.service, short(bundle.digest), bundle.digest, str(folder))
