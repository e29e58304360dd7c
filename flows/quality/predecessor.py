"""The data set that a release's data are compared with: the last other one that went live.

It is found from the data alone, so that a second run, after the first made its data the champion's,
compares with the same one and comes to the same verdict.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from flows.release.register import CHAMPION, record_of
from flows.release.values import ReleaseRecord
from flows.workspace import Workspace
from validators.contracts.dataset import Dataset
from validators.contracts.digest import Digest, canonical_json, digest_bytes
from validators.contracts.documents import load
from validators.contracts.ports import ObjectStore
from validators.contracts.quality import QualityRules
from validators.quality.reference import QualityReference, reference_of

MAX_BACK = 1000
"""Releases of the same data, one after the other."""


@dataclass(frozen=True, slots=True)
class Predecessor:
    """An earlier release's data: the document of the data set, and of the pipeline it came with."""

    dataset: Digest
    pipeline: Digest


def predecessor_of(workspace: Workspace, service: str, clean: Dataset) -> Predecessor | None:
    """The data set before this one; None where there was no other.

    Raises:
        NotFound: the store has no record of the champion.
    """
    champion = workspace.registry.alias(service, CHAMPION)
    own = digest_bytes(canonical_json(clean))
    bundle = champion.bundle if champion else None
    for _ in range(MAX_BACK):
        if bundle is None:
            return None
        record: ReleaseRecord = record_of(workspace, bundle)
        if record.dataset != own:
            return Predecessor(record.dataset, record.pipeline)
        bundle = record.baseline
    return None


def reference_from(
    store: ObjectStore, before: Predecessor | None, rules: QualityRules
) -> QualityReference | None:
    """What the earlier data set says, by the rules of today."""
    if before is None:
        return None
    dataset = load(Dataset, store.get(before.dataset), where=before.dataset)
    return reference_of(dataset, rules, _declared_classes(store.get(before.pipeline)))


def _declared_classes(pipeline: bytes) -> tuple[str, ...]:
    """The order of classes that a pipeline document declared, whichever version wrote it."""
    found: object = json.loads(pipeline)
    for key in ("gates", "quality", "labels", "classes"):
        found = found.get(key) if isinstance(found, dict) else None
    return tuple(str(item) for item in found) if isinstance(found, list) else ()
