"""The data-quality gate: each unmet expectation becomes findings, one for each bad row."""

from __future__ import annotations

from collections.abc import Iterator

from validators.contracts.dataset import Dataset
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude
from validators.quality.settings import QualitySettings
from validators.quality.suites import (
    SuiteRun,
    Unmet,
    measure_frame,
    presence_expectations,
    presence_frame,
    run_suite,
    suite_expectations,
)

GATE = "quality"
SCHEMA = "schema"  # the suite over all samples


def assess_quality(dataset: Dataset, settings: QualitySettings | None = None) -> Verdict:
    """Run the suites over a data set's measures and judge them. No sample is INCONCLUSIVE."""
    runs = run_suites(dataset, settings or QualitySettings())
    return judge_suites(runs, samples=len(dataset.samples))


def run_suites(dataset: Dataset, settings: QualitySettings) -> tuple[SuiteRun, ...]:
    """What the suites found: the evidence behind the verdict (canonical_json writes it)."""
    if not dataset.samples:
        return ()
    present = {media.modality for sample in dataset.samples for media in sample.media}
    expected = settings.expected or tuple(sorted(present))
    runs = [
        run_suite(
            SCHEMA,
            presence_frame(dataset, expected),
            presence_expectations(settings, expected),
        )
    ]
    for modality in sorted(present & settings.suites.keys()):
        suite = settings.suites[modality]
        frame = measure_frame(dataset, modality, suite)
        runs.append(run_suite(modality, frame, suite_expectations(suite)))
    runs += [
        SuiteRun(modality, 0, 0, (), (f"no-suite/{modality}",))
        for modality in sorted(present - settings.suites.keys())
    ]
    return tuple(runs)


def judge_suites(runs: tuple[SuiteRun, ...], *, samples: int) -> Verdict:
    """The verdict over suites that were run; an expectation without an answer is an ERROR."""
    findings = [finding for run in runs for unmet in run.unmet for finding in _bad_rows(unmet)]
    findings += [_unevaluated(run, name) for run in runs for name in run.errors]
    metrics = {
        "samples": float(samples),
        "expectations": float(sum(run.expectations for run in runs)),
        "expectations_unmet": float(sum(len(run.unmet) for run in runs)),
        "bad_samples": float(len({finding.subject for finding in findings})),
    }
    return conclude(GATE, findings, examined=samples, metrics=metrics)


def _bad_rows(unmet: Unmet) -> Iterator[Finding]:
    for sample, observed in zip(unmet.samples, unmet.observed, strict=True):
        yield Finding(
            GATE, f"{unmet.code}-{unmet.column}".replace("_", "-"), sample, Outcome.FAIL,
            observed, unmet.wanted, f"Repair the {unmet.modality} of this sample or remove it.",
        )  # fmt: skip


def _unevaluated(run: SuiteRun, name: str) -> Finding:
    return Finding(
        GATE, "not-evaluated", name, Outcome.ERROR, "could not be evaluated", "an answer",
        f"Give the {run.modality} suite an expectation that fits its measures.",
    )  # fmt: skip
