"""A quarantined data set becomes one that may be released, and a report that holds no value.

Nothing is written before the policy is known to cover every modality of the data set. With the
same key and the same data the result is the same to the byte, so a release can be repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from services.deidentify.centerface import load_centerface
from services.deidentify.face import FaceRedactor
from services.deidentify.policy import Operation, Policy, Rule
from services.deidentify.pseudonyms import ReleaseKey
from services.deidentify.redaction import Redactor, Region
from services.deidentify.text import TextRedactor
from services.deidentify.voice import VoiceRedactor
from validators.contracts.dataset import Dataset, Media, Sample
from validators.contracts.digest import Digest
from validators.contracts.ports import ObjectStore


@dataclass(frozen=True, slots=True)
class SampleRegions:
    """Where one medium was redacted: kinds and places, never what was there."""

    sample: str
    modality: str
    regions: tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class DeidReport:
    """What was done. `counts` are redactions by kind, sorted; `key_id` names the key used."""

    policy: Digest
    policy_name: str
    key_id: str
    source: Digest  # of the quarantined data set
    released: Digest  # of the de-identified one
    media: tuple[tuple[str, int], ...]  # how many of each modality
    counts: tuple[tuple[str, int], ...]
    redactions: tuple[SampleRegions, ...]


def deidentify(
    dataset: Dataset,
    *,
    quarantine: ObjectStore,
    released: ObjectStore,
    policy: Policy,
    key: ReleaseKey,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Dataset, DeidReport]:
    """Redact every medium by the policy's rule for its modality and store it in `released`.

    `progress` is told (samples done, samples in all).

    Raises:
        Unsupported: a modality that the policy does not cover; nothing was written.
        Refused: a stored medium is not in ingest's normal form, or its bytes changed.
        Unavailable: a store is down, or a detector is not installed.
    """
    redactors = make_redactors(dataset, policy, key)
    samples: list[Sample] = []
    redactions: list[SampleRegions] = []
    for done, sample in enumerate(dataset.samples, start=1):
        media: list[Media] = []
        for item in sample.media:
            result = redactors[item.modality].redact(item, quarantine.get(item.digest))
            digest = released.put(result.data)
            media.append(Media(item.modality, digest, result.media_type, result.measures))
            if result.regions:
                redactions.append(SampleRegions(sample.id, item.modality, result.regions))
        samples.append(Sample(sample.id, tuple(media), sample.tags, sample.captured_ms))
        if progress:
            progress(done, len(dataset.samples))
    clean = Dataset(tuple(samples), dataset.unreadable)
    return clean, _report(dataset, clean, policy, key, tuple(redactions))


def make_redactors(dataset: Dataset, policy: Policy, key: ReleaseKey) -> Mapping[str, Redactor]:
    """A redactor for each modality that the data set has.

    Raises:
        Unsupported: a modality that the policy does not cover.
    """
    modalities = sorted({item.modality for sample in dataset.samples for item in sample.media})
    return {modality: _redactor(policy.rule(modality), key) for modality in modalities}


def _redactor(rule: Rule, key: ReleaseKey) -> Redactor:
    if rule.operation is Operation.BLUR_PERMUTE:
        return FaceRedactor(rule, key, load_centerface())
    if rule.operation is Operation.HASH:
        return VoiceRedactor(key)
    return TextRedactor(rule, key)


def _report(
    source: Dataset,
    clean: Dataset,
    policy: Policy,
    key: ReleaseKey,
    redactions: tuple[SampleRegions, ...],
) -> DeidReport:
    counts = Counter(region.kind for item in redactions for region in item.regions)
    media = Counter(item.modality for sample in clean.samples for item in sample.media)
    return DeidReport(
        policy=policy.digest,
        policy_name=policy.name,
        key_id=key.key_id,
        source=source.digest,
        released=clean.digest,
        media=tuple(sorted(media.items())),
        counts=tuple(sorted(counts.items())),
        redactions=redactions,
    )
