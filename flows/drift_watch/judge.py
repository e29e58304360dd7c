"""One live window judged: drift against the reference, lineage against training's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from flows.drift_watch.gather import GATE
from flows.drift_watch.watched import Watched
from validators.contracts.digest import Digest
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude, fold
from validators.drift.explanation import Explanation, explain
from validators.drift.gate import assess_drift
from validators.drift.settings import DriftSettings
from validators.drift.window import DriftWindow
from validators.drift.window_file import digest_of
from validators.lineage.compare import compare_lineage
from validators.lineage.settings import LineageSettings
from validators.lineage.summary import JOINT, MODALITIES, LineageSummary, LineageTally, SampleFacts
from validators.watch.ready import PRESENCE, modalities_of, only, samples_of

LOOK_FORMAT = 1
MAX_EXPLAINED = 12
_ROWS = "Look at rows"
_ABSENCE = ("effect.absence.", "p.absence.")
_NEVER = 2.0  # no effect is larger than 1
_MIX = ("new-modalities", "absent-modality", "absent-channels")


@dataclass(frozen=True, slots=True)
class Look:
    """The document of a judged window: what was compared with what, and what came out."""

    format: int
    service: str
    champion: Digest  # bundle
    reference: Digest  # window
    window: Digest
    recorded: tuple[Digest, ...]  # the windows that it was joined from
    at_ms: int
    from_ms: int
    until_ms: int
    rows: int
    seen: int
    columns: tuple[str, ...]
    outcome: Outcome
    verdicts: tuple[Verdict, ...]  # drift, and lineage where rows were new
    explanations: tuple[Explanation, ...] = ()  # of what drifted
    findings: tuple[Finding, ...] = ()  # of windows that a check could not use; judge nothing


def judge(
    watched: Watched,
    window: DriftWindow,
    fresh: DriftWindow | None,
    recorded: tuple[Digest, ...],
) -> Look:
    """The verdicts of a joined window; of its lineage, those of the rows that are `fresh`."""
    columns = samples_of(window)
    settings = settings_of(watched)
    parts = comparable_parts(watched.reference, window, settings.minimum_samples)
    drift = _without_absence(assess_drift(*parts, settings, champion_exists=True))
    if fresh is not None:
        drift = _with(drift, absent_modalities(watched, fresh))
    verdicts = [drift] + ([judge_lineage(watched, fresh)] if fresh is not None else [])
    outcome = fold([item.outcome for item in verdicts]) or Outcome.INCONCLUSIVE
    return Look(
        format=LOOK_FORMAT,
        service=watched.service,
        champion=watched.version.bundle,
        reference=watched.record.window,
        window=digest_of(window),
        recorded=recorded,
        at_ms=watched.now_ms,
        from_ms=window.from_ms or 0,
        until_ms=window.until_ms or 0,
        rows=window.rows,
        seen=window.seen,
        columns=tuple(sorted(columns)),
        outcome=outcome,
        verdicts=tuple(verdicts),
        explanations=_explain(drift, *parts, settings),
    )


def absent_modalities(watched: Watched, window: DriftWindow) -> list[Finding]:
    """The modalities that the data or a branch has, and not one of these requests had."""
    minimum = watched.pipeline.gates.drift_minimum_samples
    if window.rows < minimum:
        return []
    expected = modalities_of(watched.reference) | {b.modality for b in watched.bundle.branches}
    return [
        Finding(
            GATE, "modality-absent", name, Outcome.WARN,
            f"none of {window.rows} requests", "at least one, as the data or a branch has it",
            f"Find out whether what sends {name} still does; where nothing is meant to, pass over.",
        )
        for name in sorted(expected - modalities_of(window))
    ]  # fmt: skip


def _with(verdict: Verdict, findings: list[Finding]) -> Verdict:
    """The verdict with these findings as well."""
    outcome = fold([verdict.outcome, *(item.outcome for item in findings)]) or verdict.outcome
    return replace(verdict, outcome=outcome, findings=(*verdict.findings, *findings))


def _without_absence(verdict: Verdict) -> Verdict:
    """The verdict without the figures of what is not judged of requests: how many lack a column."""
    kept = [item for item in verdict.metrics if not item[0].startswith(_ABSENCE)]
    return replace(verdict, metrics=tuple(kept))


def _explain(
    drift: Verdict, reference: DriftWindow, live: DriftWindow, settings: DriftSettings
) -> tuple[Explanation, ...]:
    """What moved, in sentences; without the rows, which nobody can look at."""
    moved = [item for item in drift.findings if item.outcome is Outcome.FAIL][:MAX_EXPLAINED]
    said = explain(replace(drift, findings=tuple(moved)), reference, live, settings)
    return tuple(
        replace(
            item,
            rows=(),
            sentences=tuple(text for text in item.sentences if not text.startswith(_ROWS)),
        )
        for item in said
    )


def settings_of(watched: Watched) -> DriftSettings:
    """The rules of the live version's own drift gate, but for what requests lack by their nature.

    A labelled sample has a picture and a caption, a request often one of them: how many rows lack
    a column says nothing.
    """
    gates = watched.pipeline.gates
    return DriftSettings(
        false_alarm_rate=gates.drift_false_alarm_rate,
        minimum_samples=gates.drift_minimum_samples,
        absence_effect=_NEVER,
    )


def comparable_parts(
    reference: DriftWindow, live: DriftWindow, minimum: int
) -> tuple[DriftWindow, DriftWindow]:
    """Both windows with the columns that can be compared.

    Without which modalities come together, and without tags that few requests name.
    """
    tags = {
        name
        for name, column in live.tags.items()
        if name in reference.tags and sum(column.counts().values()) >= minimum
    }
    categories = {
        name
        for name in {*reference.categories} & {*live.categories}
        if not name.startswith(PRESENCE)
    }

    def part(window: DriftWindow) -> DriftWindow:
        return replace(
            only(window, samples_of(live)),
            categories={name: window.categories[name] for name in sorted(categories)},
            tags={name: window.tags[name] for name in sorted(tags)},
        )

    return part(reference), part(live)


def judge_lineage(watched: Watched, window: DriftWindow) -> Verdict:
    """What requests said of themselves, and which modalities they had, against training's.

    Requests need not name tags, and need not hold all modalities at once as labelled samples do:
    which of them come together says nothing. What training never saw says all.
    """
    gates = watched.pipeline.gates
    settings = LineageSettings(
        required_tags=(),
        minimum_samples=gates.drift_minimum_samples,
        false_alarm_rate=gates.drift_false_alarm_rate,
        shift_outcome=Outcome.FAIL,
    )
    verdict = compare_lineage(watched.lineage, lineage_of(window), settings)
    kept = [finding for finding in verdict.findings if not _of_the_mix(finding)]
    return conclude(verdict.gate, kept, examined=window.rows, metrics=dict(verdict.metrics))


def lineage_of(window: DriftWindow) -> LineageSummary:
    """The lineage of a live window's rows."""
    tally = LineageTally()
    for facts in _facts(window):
        tally.add(facts)
    return tally.summary()


def _facts(window: DriftWindow) -> Iterator[SampleFacts]:
    words = {
        name: [column.vocabulary[code] if code >= 0 else None for code in column.codes.tolist()]
        for name, column in (window.tags | dict(window.categories)).items()  # type: ignore[operator]
    }
    bright = window.descriptors.get("image.brightness")
    for row in range(window.rows):
        yield SampleFacts(
            tags={name: word for name in window.tags if (word := words[name][row])},
            modalities=[
                name.removeprefix(PRESENCE)
                for name in window.categories
                if name.startswith(PRESENCE) and words[name][row] == "yes"
            ],
            brightness=(float(bright.values[row]),) if bright and bright.present[row] else (),
        )


def _of_the_mix(finding: Finding) -> bool:
    mixed = finding.code == "distribution-shifted" and finding.subject in (MODALITIES, JOINT)
    few = finding.code == "too-few-samples"  # tags that hardly any request names
    return mixed or few or finding.code in _MIX
