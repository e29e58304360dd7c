"""Chooses a precision from measurements. Pure; the order of the table's rows changes nothing.

The fastest that passes parity on tensors and on the task; what is not faster beyond the spread of
the rounds is not faster, and then the wider one is taken, as it is where the gain is small. Every
other candidate is refused with its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from validators.contracts.engine import Precision, Tolerance
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude
from validators.precision.timing import Comparison, compare_rounds
from validators.precision.words import (
    GATE,
    NOT_MEASURED,
    WIDEST_FIRST,
    Objective,
    PrecisionMeasurement,
    PrecisionTable,
    TaskMetric,
)

TASK_FLOOR = 0.98
"""Least share of the source model's decisions that a narrower engine has to keep."""

LEAST_GAIN = 0.05
"""Share of the wider one's time that a narrower precision has to save: a deviation, however small
and within its tolerance, is not taken for less."""


def choose_precision(
    table: PrecisionTable,
    tolerances: Mapping[Precision, Tolerance],
    task_floor: float = TASK_FLOOR,
    objective: Objective = Objective.LATENCY,
) -> tuple[Precision | None, Verdict]:
    """The precision to deploy, and the verdict with every refused candidate as a finding.

    None, with an outcome that stops a release, where nothing may be deployed: nothing measured
    (INCONCLUSIVE), fp32 itself not measured (ERROR) or off the source model (FAIL), or no candidate
    passing (FAIL). A refused candidate beside a chosen one is PASS where it is only slower, and
    WARN where it is off, could not be built, or could not be measured this time. Tasks that were
    measured on seeded inputs are listed, not judged: agreement on noise says little about data.
    """
    rows = _one_each(table)
    measured = [row for row in rows if row.measured]
    findings = [_unmeasured(table, row) for row in rows if not row.measured]
    off: dict[Precision, list[Finding]] = {}
    for row in measured:
        found = [*_off_parity(table, row, tolerances), *_off_task(table, row, task_floor)]
        off[row.precision] = found
        findings += found
    passing = [row for row in measured if not off[row.precision]]
    blocked = bool(off.get(Precision.FP32)) or not passing or _fp32_unmeasured(rows)
    chosen = None if blocked else _fastest(passing, objective)
    if chosen is None:
        findings = [*map(_blocking, findings)] if measured else findings
    else:
        findings += _not_chosen(table, chosen, passing, objective)
        findings += _untried(table, measured)
    verdict = conclude(
        GATE, findings, examined=len(measured), metrics=_metrics(table, chosen, rows, objective)
    )
    return (chosen.precision if chosen else None), verdict


def _one_each(table: PrecisionTable) -> list[PrecisionMeasurement]:
    """The rows by precision, widest first; of two of one precision, the first in a fixed order."""
    ordered = sorted(table.measurements, key=repr)
    found = {row.precision: row for row in reversed(ordered)}
    return [found[precision] for precision in WIDEST_FIRST if precision in found]


def _fp32_unmeasured(rows: Sequence[PrecisionMeasurement]) -> bool:
    """Fp32 was asked for and there is none: what is wrong with it is wrong with the rest."""
    return any(row.precision is Precision.FP32 and not row.measured for row in rows)


def _fastest(passing: Sequence[PrecisionMeasurement], objective: Objective) -> PrecisionMeasurement:
    """The widest of those that nobody beats, if it beats the widest there is.

    Where noise makes a ring of beatings, the least median.
    """
    widest = passing[0]

    standing = [row for row in passing if not any(beats(it, row, objective) for it in passing)]
    proven = [row for row in standing if row is widest or beats(row, widest, objective)]
    least = min(passing, key=lambda row: row.timing(objective).p50_ms)
    return (proven or standing or [least])[0]


def beats(ours: PrecisionMeasurement, theirs: PrecisionMeasurement, objective: Objective) -> bool:
    """Whether ours is faster beyond the noise, and where it is the narrower one, by enough."""
    beside = compare(ours, theirs, objective)
    narrower = WIDEST_FIRST.index(ours.precision) > WIDEST_FIRST.index(theirs.precision)
    return beside.faster and (not narrower or beside.ratio <= 1 - LEAST_GAIN)


def compare(
    ours: PrecisionMeasurement, theirs: PrecisionMeasurement, objective: Objective
) -> Comparison:
    """Time of ours over time of theirs at the objective's batch; both are measured.

    Two that were timed at different batches say nothing about each other.
    """
    a, b = ours.timing(objective), theirs.timing(objective)
    return (
        compare_rounds(a.rounds_ms, b.rounds_ms) if a.batch == b.batch else compare_rounds((), ())
    )


def _unmeasured(table: PrecisionTable, row: PrecisionMeasurement) -> Finding:
    wanted = row.precision is Precision.FP32
    if row.transient:
        advice = "Remove what stopped it and release again: it is measured again then."
    elif wanted:
        advice = "Build fp32 first: every other precision is compared with it."
    else:
        advice = f"Leave {row.precision.value} out for this backend, or give it a host that has it."
    return Finding(
        GATE, NOT_MEASURED if row.transient else "unsupported", _subject(table, row),
        Outcome.ERROR if wanted else Outcome.WARN,
        row.refused or "times or deviations are missing", "an engine that was measured", advice,
    )  # fmt: skip


def _off_parity(
    table: PrecisionTable,
    row: PrecisionMeasurement,
    tolerances: Mapping[Precision, Tolerance],
) -> Iterator[Finding]:
    limits = tolerances[row.precision]
    subject, advice = _subject(table, row), "Keep a wider precision for this encoder."
    if row.nonfinite:
        yield Finding(
            GATE, "nonfinite", subject, Outcome.WARN, row.nonfinite, 0, advice, waivable=False
        )
    # written so that a NaN is over every limit
    if row.max_rel is None or not row.max_rel <= limits.max_rel:
        yield Finding(
            GATE, "relative-difference", subject, Outcome.WARN,
            _figure(row.max_rel), limits.max_rel, advice,
        )  # fmt: skip
    if row.cosine_min is None or not row.cosine_min >= limits.cosine_min:
        yield Finding(
            GATE, "cosine", subject, Outcome.WARN,
            _figure(row.cosine_min), limits.cosine_min, advice,
        )  # fmt: skip


def _figure(value: float | None) -> float | str:
    """A document has no NaN: what is no number becomes a word."""
    return value if value is not None and math.isfinite(value) else str(value)


def _off_task(table: PrecisionTable, row: PrecisionMeasurement, floor: float) -> Iterator[Finding]:
    for task in row.tasks if table.real_items else ():
        if not task.items or not task.after >= floor:
            yield Finding(
                GATE, "task", f"{_subject(table, row)}, {task.name} of {task.output}",
                Outcome.WARN, _counted(task), floor,
                "Keep a wider precision for this encoder: it would answer otherwise.",
            )  # fmt: skip


def _counted(task: TaskMetric) -> str:
    share = f"{task.after:.4f}" if task.items else "nothing"
    return f"{share} ({task.kept} of {task.items}, 95 % {task.low:.4f} to {task.high:.4f})"


def _not_chosen(
    table: PrecisionTable,
    chosen: PrecisionMeasurement,
    passing: Sequence[PrecisionMeasurement],
    objective: Objective,
) -> Iterator[Finding]:
    for row in passing:
        if row is chosen:
            continue
        beside = compare(row, chosen, objective)
        measured = (
            f"{beside.ratio:.3f} times the time of {chosen.precision.value} "
            f"({beside.low:.3f} to {beside.high:.3f})"
        )
        code = "slower" if beside.slower else "small-gain" if beside.faster else "within-spread"
        yield Finding(
            GATE, code, _subject(table, row), Outcome.PASS, measured, "below 1",
            f"Do nothing: {chosen.precision.value} is deployed.",
        )  # fmt: skip


def _untried(table: PrecisionTable, measured: Sequence[PrecisionMeasurement]) -> Iterator[Finding]:
    tasks = any(row.tasks for row in measured)
    if len(measured) > 1 and tasks and not table.real_items:
        yield Finding(
            GATE, "no-real-data", table.subject, Outcome.WARN, 0, 1,
            "Release data of its modality, so that the task is judged on more than seeded inputs.",
        )  # fmt: skip


def _blocking(finding: Finding) -> Finding:
    """A refused candidate where none is left: it stops the release."""
    if finding.outcome > Outcome.WARN:
        return finding
    built = finding.code not in ("unsupported", NOT_MEASURED)
    worse = Outcome.FAIL if built else Outcome.WARN
    return Finding(
        finding.gate, finding.code, finding.subject, worse, finding.measured, finding.limit,
        finding.remedy, finding.waivable,
    )  # fmt: skip


def _metrics(
    table: PrecisionTable,
    chosen: PrecisionMeasurement | None,
    rows: Sequence[PrecisionMeasurement],
    objective: Objective,
) -> dict[str, float]:
    measured = [row for row in rows if row.measured]
    found = {"candidates": float(len(rows)), "candidates_measured": float(len(measured))}
    if chosen is not None:
        found["max_rel"] = chosen.max_rel or 0.0
        beside = compare(chosen, measured[0], objective)
        found[f"time_over_{measured[0].precision.value}"] = beside.ratio
    if table.bandwidth_gb_s is not None:
        found["bandwidth_gb_s"] = table.bandwidth_gb_s
    return found


@dataclass(frozen=True, slots=True)
class Choice:
    """A table with what was chosen from it: the document of the evidence."""

    table: PrecisionTable
    objective: Objective
    task_floor: float
    tolerances: tuple[tuple[str, Tolerance], ...]
    chosen: Precision | None
    verdict: Verdict


def _subject(table: PrecisionTable, row: PrecisionMeasurement) -> str:
    return f"{table.subject}, {row.precision.value}"
