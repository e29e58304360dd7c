"""The matrix of a service: versions of each encoder by versions of the text encoder they meet."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flows.compatibility.items import Items
from flows.compatibility.sides import Side, with_engine
from flows.interruption import told_to_end
from flows.progress import reporter
from flows.release.fitting import TARGET_MODALITY, held_out_of
from flows.workspace import Workspace
from services.children.errors import BuildCancelled, ChildCrashed, ChildTimedOut, ChildTooLarge
from services.children.process import run_child
from services.children.scratch import scratch
from services.compatibility.common_space import Embedded, Meeting, measure_meetings
from services.engines.manifest import open_manifest
from services.engines.requests import RUN_ENGINE, EngineRunRequest
from services.engines.tensors import load_cases, save_cases
from services.preprocess import make_preprocessor
from validators.compatibility.matrix import CompatibilityMatrix, Role, Version, fill
from validators.contracts.dataset import Sample
from validators.contracts.digest import Digest
from validators.contracts.pipeline import AdapterEntry, Branch

MAX_ITEMS = 512
"""Samples that a matrix is measured on."""

_CHUNK = 64
"""Items whose inputs are on disk at once."""


_Map = tuple[AdapterEntry, bytes | None]
"""A map into the common space with its file."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A version of one encoder, and the side that it is taken from."""

    version: Version
    side: Side
    encoder: str


def measure_matrices(
    workspace: Workspace, live: Side, sides: Sequence[Side], items: Items
) -> list[CompatibilityMatrix]:
    """A matrix for each branch of the live service that meets the text branch in its space.

    `sides` are all states of the service, oldest first, `live` among them.

    Raises:
        As building the engines of a file does. A version whose engine crashes fills its cells.
    """
    text = _branch(live, TARGET_MODALITY)
    if text is None:
        return []
    columns = _versions(sides, text.encoder, live)
    found = []
    for branch in _branches(live):
        if branch.modality == TARGET_MODALITY or branch.adapter is None or branch.decoder:
            continue
        samples = items.captioned(branch.modality)[:MAX_ITEMS]
        if not samples:
            continue
        rows = _versions(sides, branch.encoder, live)
        maps = _map(workspace, live, branch), _map(workspace, live, text)
        meeting = _meeting(maps, samples, items, _places(rows, columns))
        embedded = [_embed(workspace, item, samples, branch.modality, items) for item in rows]
        asked = [_embed(workspace, item, samples, TARGET_MODALITY, items) for item in columns]
        measured = measure_meetings(meeting, embedded, asked)
        found.append(
            fill(
                live.service,
                [item.version for item in rows],
                [item.version for item in columns],
                measured,
            )
        )
    return found


def _branches(side: Side) -> Sequence[Branch]:
    """With the adapters that were really made, where it was released."""
    return side.bundle.branches if side.bundle else side.pipeline.branches


def _branch(side: Side, modality: str) -> Branch | None:
    return next(
        (item for item in _branches(side) if item.modality == modality and item.adapter), None
    )


def _versions(sides: Sequence[Side], encoder: str, live: Side) -> list[_Known]:
    """Each version once, oldest first, by the most pressing of its roles: live, then candidate."""
    known: dict[Digest, _Known] = {}
    for side in sides:
        if encoder not in side.exported:
            continue
        key = side.fingerprint(encoder)
        before = known[key].version.role if key in known else Role.KNOWN
        pressing = side.role is Role.CANDIDATE and before is Role.ROLLBACK
        if key not in known or side is live or pressing:
            number = side.contract(encoder).version
            taken = [item.version.version for other, item in known.items() if other != key]
            if number in taken:  # two builds of one number: the side tells them apart
                number = f"{number} ({side.name})"
            known[key] = _Known(Version(encoder, number, side.role), side, encoder)
    return list(known.values())


def _places(rows: Sequence[_Known], columns: Sequence[_Known]) -> tuple[int, int]:
    """Where the live pair stands."""

    def place(versions: Sequence[_Known]) -> int:
        roles = [item.version.role.value for item in versions]
        return roles.index("live") if "live" in roles else 0

    return place(rows), place(columns)


def _meeting(
    maps: tuple[_Map, _Map],
    samples: Sequence[Sample],
    items: Items,
    places: tuple[int, int],
) -> Meeting:
    held_out: npt.NDArray[np.bool_] = held_out_of(samples)
    if maps[0][0].kind != "ridge" or not held_out.any():
        held_out = np.ones(len(samples), bool)  # what was not fitted is measured everywhere
    captions = [str(items.raw(sample, TARGET_MODALITY)) for sample in samples]
    return Meeting(*maps, places, captions, held_out)


def _map(workspace: Workspace, live: Side, branch: Branch) -> _Map:
    """The map that serves now; a side without a bundle has the identity only."""
    assert branch.adapter is not None  # noqa: S101 chosen so by the caller
    name = f"adapter-{branch.modality}.safetensors"
    assets = {asset.name: asset.digest for asset in live.bundle.assets} if live.bundle else {}
    if name in assets:
        return branch.adapter, workspace.store.get(assets[name])
    return dataclasses.replace(branch.adapter, kind="identity"), None


def _embed(
    workspace: Workspace,
    known: _Known,
    samples: Sequence[Sample],
    modality: str,
    items: Items,
) -> Embedded:
    """All items through one version's engine, in children of their own."""
    side = with_engine(workspace, known.side, known.encoder)
    engine, contract = side.engines[known.encoder], side.contract(known.encoder)
    preprocess = make_preprocessor(contract.preprocess, items.assets.get)
    manifest = open_manifest(workspace.store.get(engine.manifest), workspace.verifier)
    label = known.version.describe()
    rows: dict[str, list[npt.NDArray[Any]]] = {spec.name: [] for spec in contract.outputs}
    with scratch(workspace.home.folder("engines", "work")) as folder:
        path, feeds, out = folder / "engine", folder / "feeds.npz", folder / "answers.npz"
        workspace.store.fetch(engine.engine, path)
        request = EngineRunRequest(manifest, str(path), str(feeds), str(out), threads=1)
        for start in range(0, len(samples), _CHUNK):
            own = folder / str(start)
            own.mkdir()
            reporter().advanced("matrix", start, len(samples), label)
            part = samples[start : start + _CHUNK]
            save_cases(feeds, [preprocess(items.raw(sample, modality)) for sample in part])
            try:
                run_child(RUN_ENGINE, request, own, subject=label, cancel=told_to_end)
            except BuildCancelled:
                raise
            except (ChildCrashed, ChildTimedOut, ChildTooLarge) as error:
                return Embedded({}, error.what)
            for answer in load_cases(out):
                for name, value in answer.items():
                    rows[name].append(value[0])
    return Embedded({name: np.stack(values) for name, values in rows.items() if values})
