"""The shape profiles of a release, planned from what serving recorded, or else from its data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import onnx
from prefect import task

from flows.progress import reporter
from flows.release.media import ReleasedMedia
from flows.release.run import STEP, Release
from flows.release.values import Exported
from services.engines.profiles.bounds import bind_dims, bounds_of, symbolic_dims
from services.engines.profiles.choice import (
    ProfileChoice,
    Seen,
    Shapes,
    choose_profiles,
    keep_or_change,
)
from services.engines.profiles.footprint import footprint_of
from services.engines.profiles.histogram import tally
from services.engines.profiles.records import read_windows
from services.preprocess import make_preprocessor
from validators.contracts.dataset import Dataset
from validators.contracts.digest import Digest, canonical_json
from validators.contracts.documents import MAX_DOCUMENT_BYTES, load
from validators.contracts.encoder import EncoderContract
from validators.contracts.errors import NotFound, Refused
from validators.contracts.pipeline import AutoProfiles, EncoderEntry
from validators.contracts.ports import ObjectStore
from validators.contracts.verdict import Evidence

MINIMUM_RECORDED = 1000
"""Requests below which a recording says less than the release's own data: the platform's own probes
of a new revision are recorded too."""

MAX_SAMPLES = 1024
"""Items of the data whose shapes are read, evenly spaced."""


@task(name="profiles", **STEP)
def plan_profiles(
    release: Release, entry: EncoderEntry, exported: Exported, clean: Dataset
) -> EncoderEntry:
    """The encoder with the profiles that its engines are to have, and the plan as evidence."""
    step = f"profiles {entry.name}"
    reporter().started(step)
    recorded = recorded_shapes(_recording(release, entry.name), exported.contract)
    new = release.journal.perform(
        f"profiles-{entry.name}",
        {
            "contract": exported.contract,
            "bounds": entry.profiles,
            "auto": entry.auto,
            "onnx": exported.onnx,
            "recorded": recorded,
            "dataset": clean.digest,
        },
        ProfileChoice,
        lambda: _choose(release, entry, exported, clean, recorded),
    )
    choice, digest = _settle(release, entry, new)
    release.write_evidence(f"profiles-{entry.name}.json", canonical_json(choice))
    release.plans.append(Evidence(f"profiles-{entry.name}.json", digest))
    reporter().finished(step, f"{len(choice.profiles)} from {choice.seen.value}")
    return dataclasses.replace(entry, profiles=choice.profiles)


def planned_entries(
    release: Release, exported: Mapping[str, Exported], clean: Dataset
) -> tuple[EncoderEntry, ...]:
    """All encoders in the file's order, with planned profiles where the file asks for them."""
    return tuple(
        entry if entry.auto is None else plan_profiles(release, entry, exported[entry.name], clean)
        for entry in release.pipeline.encoders
    )


def _settle(
    release: Release, entry: EncoderEntry, new: ProfileChoice
) -> tuple[ProfileChoice, Digest]:
    """The choice that stands from now on, and the document of the one that its profiles are of."""
    store, name = release.workspace.store, f"profiles/{release.pipeline.service}/{entry.name}"
    before = store.reference(name)
    choice = keep_or_change(new, _choice_of(store, before), entry.auto or AutoProfiles())
    if choice.kept and before is not None:
        return choice, before
    digest = store.put(canonical_json(choice))
    if before != digest:
        store.set_reference(name, digest, expected=before)
    return choice, digest


def _choice_of(store: ObjectStore, digest: Digest | None) -> ProfileChoice | None:
    if digest is None:
        return None
    try:
        return load(ProfileChoice, store.get(digest), where=digest)
    except (NotFound, Refused):  # lost, damaged or of another version: chosen anew
        return None


def _choose(
    release: Release,
    entry: EncoderEntry,
    exported: Exported,
    clean: Dataset,
    recorded: Shapes,
) -> ProfileChoice:
    contract, store = exported.contract, release.workspace.store
    shapes = recorded
    if not recorded.windows:
        shapes = _shapes_of_data(contract, clean, store, recorded.note)
    maximum = {item.name: item.maximum for item in bounds_of(contract.inputs, entry.profiles[0])}
    model = onnx.load_model_from_string(store.get(exported.onnx))
    return choose_profiles(entry, shapes, footprint_of(model, maximum))


def recorded_shapes(recording: bytes | None, contract: EncoderContract) -> Shapes:
    """What serving recorded, or no windows and a note that says why they are of no use."""
    if recording is None:
        return Shapes(Seen.RECORDED, note="nothing was recorded")
    try:
        windows = read_windows(recording, where=f"shapes of {contract.name}")
    except Refused as error:
        return Shapes(Seen.RECORDED, note=f"the recording was ignored: {error.what}")
    dims = symbolic_dims(contract.inputs)
    if other := next((item.dims for item in windows if item.dims != dims), None):
        return Shapes(
            Seen.RECORDED,
            note=f"the recording was ignored: it is over {', '.join(other)}, and the contract has "
            f"{', '.join(dims)}",
        )
    if sum(item.total for item in windows) < MINIMUM_RECORDED:
        return Shapes(Seen.RECORDED, note=f"fewer than {MINIMUM_RECORDED} requests were recorded")
    return Shapes(Seen.RECORDED, tuple(windows))


def _shapes_of_data(
    contract: EncoderContract, clean: Dataset, store: ObjectStore, note: str
) -> Shapes:
    """The shapes that the released media of the encoder's modality have after preprocessing.

    In two halves, so that the plan of one is judged on the other. What is not released as media
    (voices), or made by another encoder (a decoder's tokens), has no shapes here.
    """
    media = ReleasedMedia.in_order(store, clean.samples, contract.modality)
    if not media or contract.preprocess.kind == "transcript":
        return Shapes(Seen.BOUNDS, note=note)
    preprocess = make_preprocessor(contract.preprocess, store.get)
    shapes = []
    for raw in media[:: -(-len(media) // MAX_SAMPLES)]:
        feeds = preprocess(raw)
        sizes = {name: array.shape for name, array in feeds.items()}
        shapes.append(bind_dims(contract.inputs, sizes))
    dims = symbolic_dims(contract.inputs)
    halves = (tally(dims, shapes[0::2]), tally(dims, shapes[1::2]))
    return Shapes(Seen.DATA, tuple(half for half in halves if half.total), note)


def _recording(release: Release, encoder: str) -> bytes | None:
    """The recording as it lies in the state folder; one that is too large cannot be read."""
    path = release.workspace.home.recording(release.pipeline.service, encoder)
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_DOCUMENT_BYTES + 1)
    except FileNotFoundError:
        return None
