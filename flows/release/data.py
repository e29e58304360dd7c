"""The data row of a release: ingest, de-identify, audit, quality, lineage."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from prefect import task

from flows.lineage.facts import checkpoints_of, digests_of, policy_name, preprocessing_of
from flows.progress import reporter
from flows.quality.step import judge_quality
from flows.release.alignment import Stopwatch, alignment_log_path, log_samples
from flows.release.run import STEP, Baseline, Release
from flows.release.sources import data_digest, load_factory
from flows.release.values import Deidentified, Ingested
from infra.keys.secret import open_secret
from services.deidentify.pipeline import DeidReport
from services.deidentify.pipeline import deidentify as redact
from services.deidentify.policy import load_policy
from services.deidentify.pseudonyms import ReleaseKey
from services.ingest.alignment_log import AlignmentLog
from services.ingest.folder import Journal as IngestJournal
from services.ingest.folder import ingest_folder
from services.ingest.recording.plan import IngestPlan
from services.privacy_audit.audit import Audit, audit
from services.privacy_audit.certificate import issue_certificate
from validators.contracts.dataset import Dataset
from validators.contracts.digest import Digest, canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import BadInput, Conflict, ModalgateError
from validators.lineage.gate import LineageSettings, assess_lineage
from validators.lineage.record import RECORD_FORMAT, DataChain, LineageRecord
from validators.lineage.settings import MINIMUM_SAMPLES
from validators.lineage.summary import LineageSummary, summarise
from validators.privacy.gate import assess_privacy
from validators.quality.ingest import assess_ingest

RAW_PREFIX, REHEARSAL_PREFIX = "raw-", "rehearsal-"
"""Folders inside the quarantine that live as long as a step."""


@task(name="ingest", **STEP)
def ingest(release: Release) -> Dataset:
    """Raw media into the quarantine, in one form, every unreadable row listed."""
    reporter().started("ingest")
    source = release.data["source"] = data_digest(release.pipeline.data, release.base)
    found = release.journal.perform(
        "ingest",
        {
            "source": source,
            "missing_rate": release.pipeline.gates.quality_missing_rate,
            "plan": IngestPlan.of(release.pipeline),
        },
        Ingested,
        lambda: _ingest(release),
    )
    release.data["ingested"] = found.dataset.digest
    release.gate(found.verdict)
    return found.dataset


@task(name="deidentify", **STEP)
def deidentify(release: Release, raw: Dataset) -> Deidentified:
    """Samples that may leave the quarantine: faces, voices and personal text taken out."""
    reporter().started("deidentify")
    policy, key = load_policy(release.pipeline.gates.privacy_policy), _release_key(release)

    def make() -> Deidentified:
        require_raw(release, raw)
        watch = Stopwatch(release.workspace.clock.monotonic_ns)

        def tell(done: int, total: int) -> None:
            watch.lap()
            reporter().advanced("deidentify", done, total)

        clean, report = redact(
            raw,
            quarantine=release.quarantine,
            released=release.workspace.store,
            policy=policy,
            key=key,
            progress=tell,
        )
        log_samples(release, "deidentify", clean, watch.spent_ms)
        document = canonical_json(report)
        release.write_evidence("deidentify.json", document)
        return Deidentified(clean, release.workspace.store.put(document))

    store = release.workspace.store
    found = release.journal.perform(
        "deidentify",
        {"raw": raw.digest, "policy": policy.digest, "key": key.key_id},
        Deidentified,
        make,
        needs=lambda value: [(store, digest) for digest in media_digests(value.dataset)],
    )
    release.data["dataset"] = found.dataset.digest
    reporter().finished("deidentify", f"{len(found.dataset.samples)} samples")
    return found


@task(name="privacy", **STEP)
def certify(release: Release, clean: Deidentified) -> Digest:
    """An independent audit of what is about to leave, and a signed certificate's digest."""
    reporter().started("privacy")
    workspace, dataset = release.workspace, clean.dataset
    policy = load_policy(release.pipeline.gates.privacy_policy)
    found = release.journal.perform(
        "privacy", {"dataset": dataset.digest}, Audit, lambda: audit(dataset, workspace.store)
    )
    verdict = release.gate(assess_privacy(found.finds, found.counts))
    report = load(DeidReport, workspace.store.get(clean.report), where=clean.report)
    document = issue_certificate(
        workspace.signer,
        policy=policy.digest,
        dataset=dataset.digest,
        audit=found,
        verdict=verdict,
        redacted=report.counts,
    ).document()
    release.write_evidence("certificate.json", document)
    return workspace.store.put(document)


@task(name="quality", **STEP)
def check_quality(release: Release, clean: Dataset) -> None:
    """Great Expectations suites per modality over the samples' measures, and rules over all."""
    reporter().started("quality")
    release.gate(judge_quality(release, clean))


@task(name="lineage", **STEP)
def check_lineage(
    release: Release,
    raw: Dataset,
    clean: Dataset,
    reference: LineageSummary | None,
    baseline: Baseline,
) -> Digest:
    """Tags on every sample, and nothing that training never saw; the digest of what is kept of it.

    Only counts decide here, so it is done again rather than recalled.
    """
    reporter().started("lineage")
    pipeline, gates = release.pipeline, release.pipeline.gates
    policy = load_policy(gates.privacy_policy)
    done = preprocessing_of(raw, policy)
    settings = LineageSettings(
        minimum_samples=min(gates.drift_minimum_samples, MINIMUM_SAMPLES),
        false_alarm_rate=gates.drift_false_alarm_rate,
    )
    release.gate(
        assess_lineage(
            clean,
            reference,
            champion_exists=baseline.champion_exists,
            settings=settings,
            preprocessing=digests_of(done),
        )
    )
    source = release.data.get("source") or data_digest(pipeline.data, release.base)
    chain = DataChain(
        source, f"{pipeline.data.kind} {pipeline.data.location}", raw.digest, policy_name(policy),
        clean.digest,
    )  # fmt: skip
    record = LineageRecord(
        RECORD_FORMAT, summarise(clean, digests_of(done)), chain, done,
        checkpoints_of(pipeline, release.base),
    )  # fmt: skip
    return release.workspace.store.put(canonical_json(record))


def texts_of(release: Release, clean: Dataset) -> dict[str, str]:
    """The released captions by sample id."""
    store = release.workspace.store
    return {
        sample.id: store.get(media.digest).decode()
        for sample in clean.samples
        if (media := sample.find("text"))
    }


def media_digests(dataset: Dataset) -> Iterator[Digest]:
    """Every object that the samples point to."""
    return (item.digest for sample in dataset.samples for item in sample.media)


def require_raw(release: Release, raw: Dataset) -> None:
    """Bring the raw media back into the quarantine where retention has emptied it."""
    if all(release.quarantine.contains(digest) for digest in media_digests(raw)):
        return
    again = _ingest(release).dataset
    if again.digest != raw.digest:
        raise Conflict(
            "the data source changed while it was being released",
            where=release.pipeline.data.location,
            remedy="Run the release again.",
        )


def _ingest(release: Release) -> Ingested:
    workspace = release.workspace
    with _raw_folder(release) as folder, alignment_log_path(release).open("wb") as stream:
        dataset = ingest_folder(
            folder,
            release.quarantine,
            journal=IngestJournal(AlignmentLog(stream), workspace.clock, release.trace_id),
            plan=IngestPlan.of(release.pipeline),
            spool=release.quarantine_folder,
        )
    rate = release.pipeline.gates.quality_missing_rate
    return Ingested(dataset, assess_ingest(dataset, missing_rate=rate))


@contextmanager
def _raw_folder(release: Release) -> Iterator[Path]:
    """The data set's folder: the user's own, or one that a factory fills inside the quarantine."""
    source = release.pipeline.data
    if source.kind == "folder":
        yield release.base / source.location
        return
    if source.kind != "factory":
        raise BadInput(f"there is no data source of kind {source.kind!r}", where="data")
    folder = Path(mkdtemp(prefix=RAW_PREFIX, dir=release.quarantine_folder))
    try:
        _fill(folder, source.location)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(folder: Path, location: str) -> None:
    """Run the user's factory. Raises BadInput where it fails, whatever it raises itself."""
    make = load_factory(location)
    try:
        make(folder)
    except ModalgateError:
        raise
    except Exception as error:  # the user's code: anything may come out of it
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise BadInput(
            f"the data factory raised {type(error).__name__}",
            where=f"{location}, {Path(last.filename).name}:{last.lineno}",
            remedy="Call it by itself with an empty folder, and mend it.",
        ) from error


def _release_key(release: Release) -> ReleaseKey:
    """Pseudonyms link within one service, and only under this machine's secret."""
    path = release.workspace.home.folder("keys") / "pseudonyms.key"
    return ReleaseKey(open_secret(path), scope=release.pipeline.service)
