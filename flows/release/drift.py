"""The drift gate of a release: this data against the champion's."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from prefect import task

from flows.progress import reporter
from flows.release.bundle import find
from flows.release.drift_window import measure_again
from flows.release.run import STEP, Baseline, Release
from flows.release.values import Exported, Learned, ReleaseRecord
from services.engines.manifest import open_manifest
from validators.contracts.bundle import BundledEngine
from validators.contracts.digest import Digest
from validators.contracts.origin import siblings_of
from validators.contracts.verdict import Evidence, Finding, Outcome, Verdict, conclude
from validators.drift.findings import GATE
from validators.drift.gate import assess_drift
from validators.drift.joining import Siblings, comparable
from validators.drift.settings import DriftSettings
from validators.drift.window import FORMAT, DriftWindow
from validators.drift.window_file import read_window

REPORT = "drift-report"


@task(name="drift", **STEP)
def check_drift(
    release: Release,
    learned: Learned,
    made_by: tuple[Mapping[str, Exported], Mapping[str, BundledEngine]],
    record: ReleaseRecord | None,
    baseline: Baseline,
) -> None:
    """Descriptors, tags, embeddings and pairs against the champion's window.

    `made_by` are the encoders and deployed engines that measured this release's window. Where they
    are not the champion's, its data set is measured again with them, if it is still there.
    """
    reporter().started("drift")
    gates, store = release.pipeline.gates, release.workspace.store
    settings = DriftSettings(
        false_alarm_rate=gates.drift_false_alarm_rate,
        minimum_samples=gates.drift_minimum_samples,
    )

    def assess() -> Verdict:
        current = read_window(store.get(learned.window))
        if record is None:
            return assess_drift(None, current, settings, champion_exists=baseline.champion_exists)
        siblings = _siblings(release, record, made_by[1])
        reference = read_window(store.get(record.window))
        if _unlike(reference, current, siblings):
            again = measure_again(release, record.dataset, learned.branches, *made_by)
            reference = again or reference
        verdict = assess_drift(
            reference, current, settings, champion_exists=baseline.champion_exists,
            siblings=siblings,
        )  # fmt: skip
        if record.window == learned.window:
            return verdict  # nothing to see: the very same data
        return _with_report(release, verdict, reference, current, siblings)

    release.gate(
        release.journal.perform(
            "drift",
            {
                "current": learned.window,
                "reference": record.window if record else None,
                "bundle": record.bundle if record else None,
                "settings": settings,
                "champion": baseline.champion_exists,
            },
            Verdict,
            assess,
            needs=lambda verdict: [(store, item.digest) for item in verdict.evidence],
        )
    )


def _siblings(
    release: Release, record: ReleaseRecord, engines: Mapping[str, BundledEngine]
) -> frozenset[frozenset[Digest]]:
    """Engines of the champion and of this release that passed parity with one source."""
    store, verifier = release.workspace.store, release.workspace.verifier
    champion = find(release.workspace, record.bundle)
    before = [engine for engine in champion.engines if engine.deploy]
    manifests = [engine.manifest for engine in (*before, *engines.values())]
    return siblings_of(
        open_manifest(store.get(digest), verifier)
        for digest in dict.fromkeys(manifests)
        if store.contains(digest)
    )


def _unlike(reference: DriftWindow, current: DriftWindow, siblings: Siblings) -> bool:
    """Whether the reference was measured by other encoders than this window, or by nobody knows."""
    mine, theirs = reference.embeddings, current.embeddings
    return reference.format != FORMAT or not all(
        comparable(mine[name], theirs[name], siblings) for name in {*mine} & {*theirs}
    )


def _with_report(
    release: Release,
    verdict: Verdict,
    reference: DriftWindow,
    current: DriftWindow,
    siblings: Siblings,
) -> Verdict:
    """The verdict with Evidently's pictures as evidence; without them it stands all the same."""
    reporting = importlib.import_module("validators.drift.report")  # takes seconds to import
    try:
        report = reporting.render_report(reference, current, siblings=siblings)
    except Exception as error:
        return _not_rendered(verdict, type(error).__name__)
    if report is None:
        return verdict
    evidence = []
    for name, document in ((f"{REPORT}.json", report.json), (f"{REPORT}.html", report.html)):
        release.write_evidence(name, document)
        evidence.append(Evidence(name, release.workspace.store.put(document)))
    return verdict.with_evidence(*evidence)


def _not_rendered(verdict: Verdict, reason: str) -> Verdict:
    finding = Finding(
        GATE, "report-not-rendered", REPORT, Outcome.WARN, reason, "a report",
        "The verdict stands without it; render it again with modalgate drift check.",
    )  # fmt: skip
    noted = conclude(GATE, [*verdict.findings, finding], examined=1, metrics=dict(verdict.metrics))
    return noted.with_evidence(*verdict.evidence)
