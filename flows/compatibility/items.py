"""What versions are compared on: released media, or a file's own, which stay in the quarantine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from flows.compatibility.sides import Side, release_of
from flows.locks import exclusive
from flows.release.data import ingest, require_raw
from flows.release.fitting import TARGET_MODALITY
from flows.release.media import RELEASED, spread_out
from flows.retention import purge
from flows.workspace import Workspace
from services.engines.cases import make_cases
from services.preprocess import make_preprocessor
from validators.contracts.dataset import Dataset, Sample
from validators.contracts.documents import load
from validators.contracts.encoder import EncoderContract
from validators.contracts.errors import BadInput
from validators.contracts.ports import ObjectStore, Tensors

SEEDED = 4
"""Seeded inputs between the corners of each profile, where there are no media for an encoder."""

MAX_RAWS = 512


@dataclass(frozen=True, slots=True)
class Items:
    """Samples and the store that holds their media; assets of encoders are in `assets`."""

    samples: tuple[Sample, ...]
    media: ObjectStore
    assets: ObjectStore

    def captioned(self, modality: str) -> list[Sample]:
        """Samples that have both a caption and this modality."""
        return [
            sample
            for sample in self.samples
            if sample.find(TARGET_MODALITY) and sample.find(modality)
        ]

    def raw(self, sample: Sample, modality: str) -> bytes | str:
        media = sample.find(modality)
        if media is None:
            raise BadInput(f"the sample has no {modality}", where=sample.id)
        data = self.media.get(media.digest)
        return data.decode() if media.media_type.startswith("text/") else data

    def feeds(self, side: Side, encoder: str, count: int) -> list[Tensors]:
        """The first `count` of `raws` through the encoder's preprocessing, in batches of one.

        Where no media of its modality can be used (voices are never released), seeded inputs.
        """
        contract = side.contract(encoder)
        raws = self.raws(contract)[:count]
        if not raws:
            profiles = side.pipeline.encoder(encoder).profiles
            return [case.feeds for case in make_cases(contract.inputs, profiles, between=SEEDED)]
        preprocess = make_preprocessor(contract.preprocess, self.assets.get)
        return [preprocess(raw) for raw in raws]

    def raws(self, contract: EncoderContract) -> Sequence[bytes | str]:
        """The media that an encoder reads, MAX_RAWS at most; none where none can be.

        Spread out: every beginning stands for the whole data set.
        """
        if contract.preprocess.kind in ("transcript", "tensor"):
            return ()
        usable = [
            sample
            for sample in self.samples
            if (media := sample.find(contract.modality)) and media.media_type.startswith(RELEASED)
        ]
        return [self.raw(sample, contract.modality) for sample in spread_out(usable)[:MAX_RAWS]]


@contextmanager
def items_of(workspace: Workspace, sides: Sequence[Side]) -> Iterator[Items]:
    """The released data of the first side that has any; else the first file's, ingested for now.

    A file's media are raw: they are read inside the quarantine, which is emptied at the end.

    Raises:
        Conflict: a release of the service has the quarantine now.
    """
    for side in sides:
        if side.dataset is not None:
            dataset = load(Dataset, workspace.store.get(side.dataset), where=side.dataset)
            yield Items(dataset.samples, workspace.store, workspace.store)
            return
    side = sides[0]
    lock = workspace.home.lock(f"release-{side.service}")
    with exclusive(lock, f"a release of {side.service}"):
        run = release_of(workspace, side.pipeline, side.base)
        try:
            raw = ingest.fn(run)
            require_raw(run, raw)  # a recalled ingest finds the quarantine empty
            yield Items(raw.samples, run.quarantine, workspace.store)
        finally:
            purge(run.quarantine)
