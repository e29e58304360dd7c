"""One bundle, loaded: engines, preprocessing, adapters, catalogue. Immutable once it serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.gateway.catalogue import Catalogue
from services.gateway.encoders import (
    Adapter,
    CountShape,
    LoadedEncoder,
    Loaders,
    Transcribe,
    load_encoder,
)
from services.gateway.folder import BundleFolder, open_folder
from services.gateway.mixing import require_catalogue
from validators.contracts.bundle import Bundle
from validators.contracts.digest import Digest
from validators.contracts.documents import load
from validators.contracts.errors import NotFound, Unsupported
from validators.contracts.pipeline import Branch
from validators.watch.plan import ASSET, RecordingPlan

ANSWER_KINDS = ("retrieval", "embedding")


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
    recording: RecordingPlan = field(default_factory=RecordingPlan)

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
    name: str,
    path: Path,
    loaders: Loaders,
    expected: Digest | None = None,
    *,
    count_shape: CountShape = lambda encoder, outcome: None,
) -> LoadedRevision:
    """The revision in a materialised bundle folder, every part of it checked.

    Raises:
        Refused: a signature, digest, state or host does not hold; or the catalogue's vectors come
            from another encoder version.
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
            encoders[item.contract.name] = load_encoder(
                item.contract.name, name, folder, loaders, count_shape
            )
        branches = {
            branch.modality: _load_branch(branch, folder, encoders, loaders)
            for branch in bundle.branches
        }
        _require_joined(branches)
        if catalogue is not None:
            require_catalogue(catalogue.origins, bundle.branches, encoders)
    except BaseException:
        for encoder in encoders.values():
            encoder.engine.close()
        raise
    recording = _recording(folder)
    return LoadedRevision(name, bundle.digest, bundle, encoders, branches, catalogue, recording)


def _recording(folder: BundleFolder) -> RecordingPlan:
    """What may be recorded; nothing, where the bundle does not say."""
    data = folder.find_asset(ASSET)
    return RecordingPlan() if data is None else load(RecordingPlan, data, where=ASSET)


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
