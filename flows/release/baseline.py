"""The champion that a release is compared with, and the compatibility gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from prefect import task

from flows.progress import reporter
from flows.release.adapters import OpenPair, judge_pair
from flows.release.bundle import find
from flows.release.inside import look_inside
from flows.release.media import ReleasedMedia
from flows.release.register import record_of
from flows.release.run import STEP, Baseline, Release
from flows.release.values import Exported, ReleaseRecord
from flows.release.versions import VersionFailed, judge_failure, open_version
from services.compatibility.compare import check_alone
from services.engines.cases import make_cases
from services.preprocess import make_preprocessor
from validators.compatibility.presence import lost_encoder
from validators.compatibility.verdict import GATE, assess_first_version
from validators.compatibility.words import CompatibilitySettings
from validators.contracts.bundle import Bundle, BundledEncoder, BundledEngine
from validators.contracts.dataset import Dataset
from validators.contracts.encoder import EncoderContract, encoder_fingerprint
from validators.contracts.ports import Tensors
from validators.contracts.verdict import Outcome, Verdict, conclude
from validators.lineage.record import read_summary
from validators.lineage.summary import LineageSummary

MAX_FEEDS = 64
"""Items that two versions are compared on, spread over the data set. What breaks on fewer than one
item in so many is seen where all are embedded: see `flows.release.fitting`."""


def record_of_baseline(release: Release, baseline: Baseline) -> ReleaseRecord | None:
    if baseline.version is None:
        return None
    return record_of(release.workspace, baseline.version.bundle)


def lineage_of(release: Release, record: ReleaseRecord | None) -> LineageSummary | None:
    if record is None:
        return None
    return read_summary(release.workspace.store.get(record.lineage), where=record.lineage)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What would take the champion's place: its data, contracts and engines by encoder."""

    clean: Dataset
    exported: Mapping[str, Exported]
    engines: Mapping[str, BundledEngine]


@task(name="compatibility", **STEP)
def check_compatibility(
    release: Release, candidate: Candidate, record: ReleaseRecord | None, baseline: Baseline
) -> None:
    """Each encoder against the champion's version of it, from executed tensors."""
    reporter().started("compatibility")
    champion = find(release.workspace, record.bundle) if record else None
    release.gate(
        release.journal.perform(
            "compatibility",
            {
                "dataset": candidate.clean.digest,
                "encoders": dict(candidate.exported),
                "engines": {name: item.engine for name, item in candidate.engines.items()},
                "champion": champion.digest if champion else None,
                "champion_exists": baseline.champion_exists,
                "linf": release.pipeline.gates.compatibility_linf,
                "backends": release.pipeline.backends,
            },
            Verdict,
            lambda: _compare(release, candidate, champion, baseline),
            needs=lambda verdict: [
                (release.workspace.store, item.digest) for item in verdict.evidence
            ],
            keep=lambda verdict: verdict.outcome is not Outcome.ERROR,
        )
    )


def _compare(
    release: Release, candidate: Candidate, champion: Bundle | None, baseline: Baseline
) -> Verdict:
    settings = CompatibilitySettings(
        linf=release.pipeline.gates.compatibility_linf, catalogue_reencoded=True
    )
    verdicts = {name: [verdict] for name, verdict in lost_encoders(champion, candidate.exported)}
    for done, (name, new) in enumerate(candidate.exported.items()):
        reporter().advanced("compatibility", done, len(candidate.exported), name)
        old = _encoder_of(champion, name)
        if old is not None and old.fingerprint == encoder_fingerprint(new.contract, new.onnx):
            continue
        fresh_engine = candidate.engines[name]
        feeds = _feeds(release, candidate, new.contract)
        if champion is None or old is None:
            lost = champion is None and baseline.champion_exists
            try:
                with open_version(release.workspace, new.contract, fresh_engine, "new") as fresh:
                    check = check_alone(fresh, feeds)
                outside = assess_first_version(check, settings, champion_exists=lost)
            except VersionFailed as error:
                outside = judge_failure(error)
            before, pairs = None, [(feed, feed) for feed in feeds]
        else:
            before = old, champion.deployed_engine(name)
            pairs = list(zip(_feeds(release, candidate, old.contract), feeds, strict=True))
            store, samples = release.workspace.store, candidate.clean.samples
            media = ReleasedMedia.of(store, samples, new.contract.modality)
            stored = replace(settings, stored_items=len(media))
            try:
                with (
                    open_version(release.workspace, new.contract, fresh_engine, "new") as fresh,
                    open_version(release.workspace, old.contract, before[1], "old") as known,
                ):
                    fingerprint = encoder_fingerprint(new.contract, new.onnx)
                    both = OpenPair(known, fresh, old.fingerprint, fingerprint, media)
                    outside = judge_pair(release.workspace, both, pairs, stored)
            except VersionFailed as error:
                outside = judge_failure(error)
        inside = look_inside(release, (new, fresh_engine), before, pairs)
        verdicts[name] = [outside, inside]
    return _join(verdicts, len(candidate.exported))


def _join(verdicts: Mapping[str, Sequence[Verdict]], encoders: int) -> Verdict:
    """One verdict over all encoders; metrics are named by their encoder."""
    parts = [(name, verdict) for name, found in verdicts.items() for verdict in found]
    metrics = {f"{name}.{metric}": value for name, part in parts for metric, value in part.metrics}
    metrics["encoders_compared"] = float(len(verdicts))
    joined = conclude(
        GATE,
        [finding for _, part in parts for finding in part.findings],
        examined=encoders,
        metrics=metrics,
    )
    return joined.with_evidence(*(item for _, part in parts for item in part.evidence))


def lost_encoders(
    champion: Bundle | None, exported: Mapping[str, Exported]
) -> Iterator[tuple[str, Verdict]]:
    """Each encoder of the champion that the candidate has not, with its verdict."""
    for item in champion.encoders if champion else ():
        contract = item.contract
        if contract.name not in exported:
            finding = lost_encoder(contract.name, contract.version)
            yield contract.name, conclude(GATE, [finding], examined=1)


def _encoder_of(champion: Bundle | None, name: str) -> BundledEncoder | None:
    known = champion.encoders if champion else ()
    return next((item for item in known if item.contract.name == name), None)


def _feeds(release: Release, candidate: Candidate, contract: EncoderContract) -> list[Tensors]:
    """Released media of the encoder's modality, spread out, through its own preprocessing.

    What is not released as media (voices) is replaced by the seeded inputs of the parity gate.
    """
    store = release.workspace.store
    raws = ReleasedMedia.of(store, candidate.clean.samples, contract.modality)[:MAX_FEEDS]
    if not raws:
        profiles = release.pipeline.encoder(contract.name).profiles
        return [case.feeds for case in make_cases(contract.inputs, profiles, between=4)]
    preprocess = make_preprocessor(contract.preprocess, store.get)
    return [preprocess(raw) for raw in raws]
