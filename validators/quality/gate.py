"""The data-quality gate: suites over a data set's measures, and rules over all of it.

Values in, verdict out, with the documents that it rests on: every bad row by id, Great
Expectations' results, its pages, and the suites that were used.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from validators.contracts.dataset import Dataset
from validators.contracts.digest import canonical_json, plain
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude
from validators.quality.checkpoint import SuiteRun, run_suite
from validators.quality.columns import judge_categories, judge_clipping, judge_columns
from validators.quality.contract import samples_suite, usual_suite
from validators.quality.duplicates import Copies, copies_of, judge_duplicates
from validators.quality.frames import modality_frame, present_modalities, samples_frame
from validators.quality.judgement import judge_run
from validators.quality.labels import judge_labels, label_metrics
from validators.quality.naming import GATE, code_of, wanted_by
from validators.quality.pages import pack_pages, render_pages
from validators.quality.reference import QualityReference
from validators.quality.settings import QualitySettings
from validators.quality.suite_file import write_suite
from validators.quality.times import judge_times
from validators.quality.words import SAMPLES, Suite

RESULTS, PAGES, SUITES = "quality-results.json", "quality-docs.zip", "quality-suites.json"
_PRESENT = "expect_column_values_to_not_be_null"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a data set is judged against besides its suites.

    `held_out` are the ids that no fit may see, `fitted` the modalities that something is fitted on
    (None: all), `split_declared` whether the data say their split themselves. `future` are the ids
    whose time is ahead of the clock (`times.from_the_future`), `notes` findings about the suites.
    """

    reference: QualityReference | None = None
    held_out: Collection[str] = ()
    fitted: Collection[str] | None = None
    split_declared: bool = True
    future: Collection[str] = ()
    notes: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Examination:
    """The verdict, and the documents that it rests on, by file name."""

    verdict: Verdict
    documents: Mapping[str, bytes]


def assess_quality(dataset: Dataset, settings: QualitySettings | None = None) -> Verdict:
    """The verdict alone, by what any medium has to be. No sample is INCONCLUSIVE."""
    return examine(dataset, settings or QualitySettings(), Surroundings(), pages=False).verdict


def examine(
    dataset: Dataset, settings: QualitySettings, around: Surroundings, *, pages: bool = True
) -> Examination:
    """Judge a data set, and keep what the verdict rests on.

    `pages` False leaves out the pages for people. Great Expectations is imported at the first call.
    """
    runs, uncovered = run_suites(dataset, settings)
    copies = copies_of(dataset, settings.rules.duplicates)
    least = settings.rules.minimum_samples
    findings = list(around.notes)
    findings += [item for run in runs for item in judge_run(run, minimum_samples=least)]
    findings += [_no_suite(modality) for modality in uncovered]
    findings += _judge_rules(dataset, settings, around, (runs, copies))
    verdict = conclude(
        GATE, findings, examined=len(dataset.samples),
        metrics=_metrics(dataset, settings, around, runs, findings),
    )  # fmt: skip
    documents = {
        RESULTS: _results(runs, copies, findings),
        SUITES: canonical_json([_json(write_suite(run.suite)) for run in runs]),
    }
    if pages and runs:
        documents[PAGES] = pack_pages(render_pages(runs))
    return Examination(verdict, documents)


def run_suites(
    dataset: Dataset, settings: QualitySettings
) -> tuple[list[SuiteRun], tuple[str, ...]]:
    """The suites over the data set's tables, and the modalities that no suite covers."""
    if not dataset.samples:
        return [], ()
    present = present_modalities(dataset)
    whole = settings.suites.get(SAMPLES) or samples_suite(
        settings.expected or present, settings.missing_rate
    )
    runs = [run_suite(whole, samples_frame(dataset, _demanded(whole)))]
    uncovered = []
    for modality in present:
        suite = settings.suites.get(modality) or usual_suite(modality)
        if suite is None:
            uncovered.append(modality)
        else:
            frame = modality_frame(dataset, modality, _demanded(suite))
            runs.append(run_suite(suite, frame))
    return runs, tuple(uncovered)


def _demanded(suite: Suite) -> Iterator[str]:
    """Columns that the suite asks to be there: they are in the table, empty where nobody has them.

    A column that is merely looked at has to exist, or a range would be met by nothing at all.
    """
    return (item.column for item in suite.expectations if item.type == _PRESENT)


def _judge_rules(
    dataset: Dataset,
    settings: QualitySettings,
    around: Surroundings,
    found: tuple[list[SuiteRun], Copies],
) -> Iterator[Finding]:
    rules, least = settings.rules, settings.rules.minimum_samples
    runs, copies = found
    frames = {run.suite.name: run.frame for run in runs if run.suite.name != SAMPLES}
    yield from judge_duplicates(
        copies, rules.duplicates, around.held_out,
        fitted=around.fitted, declared=around.split_declared,
    )  # fmt: skip
    yield from judge_times(dataset, rules.times, around.future)
    yield from judge_columns(frames, rules.columns, minimum_samples=least)
    yield from judge_categories(dataset, rules.columns, rules.labels, around.reference)
    yield from judge_clipping(frames, rules.clipping)
    if rules.labels is not None and dataset.samples:
        yield from judge_labels(dataset, rules.labels, around.reference, minimum_samples=least)


def _no_suite(modality: str) -> Finding:
    return Finding(
        GATE, "not-evaluated", f"no-suite/{modality}", Outcome.ERROR, "no suite", "a suite",
        f"Write quality/{modality}.json, or give the modality a branch.",
    )  # fmt: skip


def _metrics(
    dataset: Dataset,
    settings: QualitySettings,
    around: Surroundings,
    runs: list[SuiteRun],
    findings: list[Finding],
) -> dict[str, float]:
    bad = {sample for run in runs for item in run.checked for sample in run.ids(item.rows or ())}
    metrics = {
        "samples": float(len(dataset.samples)),
        "expectations": float(sum(len(run.checked) for run in runs)),
        "expectations_unmet": float(sum(not item.met for run in runs for item in run.checked)),
        "bad_samples": float(len(bad)),
        "rules_broken": float(len({item.code for item in findings})),
        "reference_samples": float(around.reference.samples if around.reference else 0),
    }
    if settings.rules.labels is not None:
        metrics |= label_metrics(dataset, settings.rules.labels)
    return metrics


def _results(runs: list[SuiteRun], copies: Copies, findings: list[Finding]) -> bytes:
    """Everything that was found, every bad row by id. No value of a medium is in it."""
    return canonical_json(
        {
            "findings": findings,
            "suites": [
                {
                    "name": run.suite.name,
                    "rows": len(run.frame),
                    "origin": run.suite.origin,
                    "failing": _failing(run),
                    "result": _writable(run.document),
                }
                for run in runs
            ],
            "duplicates": copies.exact,
            "held": copies.held,
            "near_duplicates": copies.near,
        }
    )


def _failing(run: SuiteRun) -> list[dict[str, Any]]:
    return [
        {
            "code": code_of(item.expectation),
            "wanted": wanted_by(item.expectation),
            "samples": run.ids(item.rows or ()),
            "error": item.error,
        }
        for item in run.checked
        if not item.met or item.rows
    ]


def _writable(value: Any) -> Any:
    """The value without what canonical JSON does not know: NaN and infinity become text."""
    if isinstance(value, Mapping):
        return {str(key): _writable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return plain(value)


def _json(data: bytes) -> Any:
    return json.loads(data)
