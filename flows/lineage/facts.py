"""What a release writes down of where its data and its encoders came from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from flows.release.sources import encoder_digest
from services.deidentify.policy import Policy
from services.ingest.recipes import ingest_step
from validators.contracts.dataset import Dataset
from validators.contracts.digest import Digest
from validators.contracts.pipeline import Pipeline
from validators.lineage.preprocessing import Preprocessing, Step
from validators.lineage.record import Checkpoint

DEIDENTIFY_VERSION = 1
"""Rises when the same operation with the same options gives other media."""


def preprocessing_of(raw: Dataset, policy: Policy) -> tuple[Preprocessing, ...]:
    """What ingest and de-identification did to the media of each modality, in order."""
    types = {media.modality: media.media_type for item in raw.samples for media in item.media}
    return tuple(
        Preprocessing(modality, (ingest_step(types[modality]), _deidentify(policy, modality)))
        for modality in sorted(types)
    )


def digests_of(preprocessing: tuple[Preprocessing, ...]) -> Mapping[str, Digest]:
    return {item.modality: item.digest for item in preprocessing}


def checkpoints_of(pipeline: Pipeline, base: Path) -> tuple[Checkpoint, ...]:
    """The source of each encoder, in the file's order."""
    return tuple(
        Checkpoint(entry.name, encoder_digest(entry, base), entry.source.kind.value)
        for entry in pipeline.encoders
    )


def policy_name(policy: Policy) -> str:
    return f"{policy.name} {policy.version}"


def _deidentify(policy: Policy, modality: str) -> Step:
    rule = policy.rule(modality)
    settings = {**dict(rule.options), "policy": policy.name, "policy_version": policy.version}
    return Step(
        "deidentify", rule.operation.value, DEIDENTIFY_VERSION, tuple(sorted(settings.items()))
    )
