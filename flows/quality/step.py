"""The quality step of a release: judge, keep what the verdict rests on, show it to people."""

from __future__ import annotations

from flows.quality.predecessor import predecessor_of, reference_from
from flows.quality.suite_folder import read_folder
from flows.release.fitting import held_out_of
from flows.release.run import Release
from flows.workspace import Workspace
from infra.files import write_atomically
from validators.contracts.dataset import Dataset
from validators.contracts.digest import digest_value
from validators.contracts.verdict import Evidence, Verdict
from validators.quality.contract import contract_suites
from validators.quality.gate import PAGES, RESULTS, Surroundings, examine
from validators.quality.pages import unpack_pages
from validators.quality.settings import QualitySettings
from validators.quality.staleness import judge_files
from validators.quality.times import from_the_future
from validators.quality.words import Suite

FOLDER = "quality"  # below the service's folder of evidence
SPLIT_TAG = "split"
LEARNED = ("ridge", "auto")  # adapters that are fitted on pairs


def judge_quality(release: Release, clean: Dataset) -> Verdict:
    """The verdict on a data set, recalled where the same was judged by the same.

    Raises:
        SuiteFileError: the user's suites are wrong.
    """
    workspace, pipeline = release.workspace, release.pipeline
    made = contract_suites(pipeline)
    files = read_folder(pipeline, release.base)
    suites = made | files
    settings = QualitySettings(
        missing_rate=pipeline.gates.quality_missing_rate,
        suites=suites,
        rules=pipeline.gates.quality,
    )
    now_ms = workspace.clock.wall_ns() / 1e6
    future = from_the_future(clean, settings.rules.times, now_ms)
    before = predecessor_of(workspace, pipeline.service, clean)
    notes = tuple(judge_files(files, made)) if pipeline.gates.quality.suites else ()

    fitted = sorted(
        branch.modality
        for branch in pipeline.branches
        if branch.adapter is not None and branch.adapter.kind in LEARNED
    )

    def make() -> Verdict:
        around = Surroundings(
            reference=reference_from(workspace.store, before, settings.rules),
            held_out=_held_out(clean),
            fitted=fitted,
            split_declared=any(SPLIT_TAG in sample.tag_map() for sample in clean.samples),
            future=future,
            notes=notes,
        )
        examined = examine(clean, settings, around)
        return examined.verdict.with_evidence(
            *(
                Evidence(name, workspace.store.put(data))
                for name, data in sorted(examined.documents.items())
            )
        )

    verdict = release.journal.perform(
        "quality",
        {
            "dataset": clean.digest,
            "missing_rate": settings.missing_rate,
            "rules": settings.rules,
            "suites": {name: _suite_digest(suite) for name, suite in suites.items()},
            "notes": notes,
            "future": future,
            "fitted": fitted,
            "before": before,
        },
        Verdict,
        make,
        needs=lambda verdict: [(workspace.store, item.digest) for item in verdict.evidence],
    )
    show_evidence(workspace, pipeline.service, verdict)
    return verdict


def show_evidence(workspace: Workspace, service: str, verdict: Verdict) -> None:
    """Readable copies of what the verdict rests on, in the state folder."""
    folder = workspace.home.folder("evidence", service, FOLDER)
    kept = {item.name: item.digest for item in verdict.evidence}
    pages: dict[str, bytes] = {}
    if PAGES in kept:
        pages = unpack_pages(workspace.store.get(kept[PAGES]))
    for path in folder.glob("*.html"):
        if path.name not in pages:
            path.unlink()
    for name, data in pages.items():
        write_atomically(folder / name, data)
    if RESULTS in kept:
        results = workspace.store.get(kept[RESULTS])
        workspace.write_evidence(service, f"{FOLDER}/{RESULTS}", results)


def _held_out(clean: Dataset) -> frozenset[str]:
    if not clean.samples:
        return frozenset()
    chosen = held_out_of(clean.samples)
    return frozenset(sample.id for sample, out in zip(clean.samples, chosen, strict=True) if out)


def _suite_digest(suite: Suite) -> str:
    return digest_value("quality-suite", suite)
