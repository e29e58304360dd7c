"""From what the suites found to findings: which samples, how sure, how bad.

An expectation about every row names each bad row, up to MAX_NAMED of them, and counts the rest. One
that bears a share of bad rows (`mostly`) is a statement about a rate: it fails where the rate is
beyond the share even at the lower end of Wilson's interval, and is left undecided where only the
measured rate is, or where there are too few rows to tell.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from validators.compatibility.estimates import wilson_bounds
from validators.contracts.verdict import Finding, Outcome
from validators.quality.checkpoint import Checked, SuiteRun
from validators.quality.naming import GATE, code_of, wanted_by
from validators.quality.words import MAX_NAMED, SAMPLES, Expectation, Severity

_OUTCOMES = {
    Severity.CRITICAL: Outcome.FAIL, Severity.WARNING: Outcome.WARN, Severity.INFO: Outcome.PASS,
}  # fmt: skip


def judge_run(run: SuiteRun, *, minimum_samples: int) -> Iterator[Finding]:
    """The findings of one suite. An expectation without an answer is an ERROR."""
    for answer in run.checked:
        if answer.error:
            yield _unevaluated(run, answer)
        elif answer.rows is None:
            if not answer.met:
                yield _whole(run, answer)
        elif answer.rows and answer.expectation.mostly < 1.0:
            yield from _rate(run, answer, minimum_samples)
        elif answer.rows:
            yield from _bad_rows(run, answer)


def _bad_rows(run: SuiteRun, answer: Checked) -> Iterator[Finding]:
    rows = answer.rows or ()
    expectation, code = answer.expectation, code_of(answer.expectation)
    outcome, wanted = _OUTCOMES[expectation.severity], wanted_by(expectation)
    for row, sample in zip(rows[:MAX_NAMED], run.ids(rows[:MAX_NAMED]), strict=True):
        yield Finding(
            GATE, code, sample, outcome, _value(run, expectation, row), wanted,
            f"Repair the {_thing(run)} of this sample or remove it.",
        )  # fmt: skip
    if len(rows) > MAX_NAMED:
        yield Finding(
            GATE, code, f"{run.suite.name}+{len(rows) - MAX_NAMED}", outcome,
            f"{len(rows)} of {answer.judged} rows, {MAX_NAMED} of them named", wanted,
            "Look at quality-results.json, which names them all.",
        )  # fmt: skip


def _rate(run: SuiteRun, answer: Checked, minimum_samples: int) -> Iterator[Finding]:
    rows = answer.rows or ()
    bearable = round(1 - answer.expectation.mostly, 9)
    rate = len(rows) / answer.judged
    if rate <= bearable:
        return
    low, high = wilson_bounds(rate, answer.judged)
    sure = low > bearable and answer.judged >= minimum_samples
    worst = Outcome.FAIL if sure else Outcome.INCONCLUSIVE
    names = ", ".join(run.ids(rows[:MAX_NAMED]))
    more = f" and {len(rows) - MAX_NAMED} more" if len(rows) > MAX_NAMED else ""
    column = answer.expectation.column
    yield Finding(
        GATE, code_of(answer.expectation), run.suite.name,
        worst if answer.expectation.severity is Severity.CRITICAL
        else _OUTCOMES[answer.expectation.severity],
        f"{len(rows)} of {answer.judged} samples ({low:.1%} to {high:.1%}): {names}{more}",
        f"{bearable:.4g} of them at most",
        f"Bring {column} that is {wanted_by(answer.expectation)} in more samples"
        + (", or leave these out." if sure else
           f", or more samples than {answer.judged} to tell whether the rate is bearable."),
    )  # fmt: skip


def _whole(run: SuiteRun, answer: Checked) -> Finding:
    expectation = answer.expectation
    return Finding(
        GATE, code_of(expectation), run.suite.name, _OUTCOMES[expectation.severity],
        answer.observed or "otherwise", wanted_by(expectation),
        f"Look at {expectation.column} over all samples, and mend them or the suite.",
    )  # fmt: skip


def _unevaluated(run: SuiteRun, answer: Checked) -> Finding:
    return Finding(
        GATE, "not-evaluated", f"{run.suite.name}/{code_of(answer.expectation)}", Outcome.ERROR,
        answer.error, "an answer",
        f"Give the {run.suite.name} suite an expectation that fits its measures.",
    )  # fmt: skip


def _thing(run: SuiteRun) -> str:
    return "media" if run.suite.name == SAMPLES else run.suite.name


def _value(run: SuiteRun, expectation: Expectation, row: int) -> str:
    column = expectation.column
    if column not in run.frame.columns:
        return "otherwise"
    value = run.frame[column].to_numpy()[row]
    if pd.isna(value):
        return "missing"
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:128]
