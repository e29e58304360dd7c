"""One verdict for every gate.

`PASS < WARN < INCONCLUSIVE < ERROR < FAIL`, folded by worst-of. What was not measured is never
PASS: `conclude` answers INCONCLUSIVE where nothing was examined. (The four-way split between a
failed measurement and a failed subject follows Argo Rollouts' analysis phases.)
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from validators.contracts.digest import Digest
from validators.contracts.errors import Blocked, Undecided


class Outcome(enum.Enum):
    """How a gate, or one finding of it, came out. Ordered by severity."""

    PASS = "PASS"
    WARN = "WARN"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"
    FAIL = "FAIL"

    @property
    def severity(self) -> int:
        return _ORDER[self]

    def __lt__(self, other: Outcome) -> bool:
        return self.severity < other.severity

    def __le__(self, other: Outcome) -> bool:
        return self.severity <= other.severity


_ORDER = {outcome: rank for rank, outcome in enumerate(Outcome)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a gate noticed: enough for a person to act without opening the code."""

    gate: str
    code: str  # the rule, stable and lower-case: "face-visible"
    subject: str  # the sample, tensor, engine or metric, by its id
    outcome: Outcome
    measured: float | str
    limit: float | str
    remedy: str  # an imperative sentence
    waivable: bool = True

    @property
    def name(self) -> str:
        """What a waiver has to quote."""
        return f"{self.gate}/{self.code}/{self.subject}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A document that a verdict rests on, kept in the object store."""

    name: str  # file name a person recognises: "parity-image.json"
    digest: Digest


@dataclass(frozen=True, slots=True)
class Verdict:
    """A gate's answer. `metrics` are the measured figures, units in their names."""

    gate: str
    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    metrics: tuple[tuple[str, float], ...] = ()
    evidence: tuple[Evidence, ...] = ()

    def with_evidence(self, *evidence: Evidence) -> Verdict:
        return dataclasses.replace(self, evidence=self.evidence + evidence)


@dataclass(frozen=True, slots=True)
class Waiver:
    """Somebody's word that one named finding may pass until a time."""

    finding: str  # Finding.name
    owner: str
    reason: str
    until_s: float  # wall time, seconds since the epoch


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """Which outcome stops the flow: this one and all that are worse."""

    stops_at: Outcome = Outcome.INCONCLUSIVE

    def stops(self, verdict: Verdict) -> bool:
        return self.stops_at <= verdict.outcome


def fold(outcomes: Iterable[Outcome]) -> Outcome | None:
    """The worst outcome, or None where there was none to fold."""
    return max(outcomes, key=lambda outcome: outcome.severity, default=None)


def conclude(
    gate: str,
    findings: Iterable[Finding],
    *,
    examined: int,
    metrics: Mapping[str, float] | None = None,
) -> Verdict:
    """The verdict of a gate that examined `examined` subjects and noticed these findings."""
    found = tuple(findings)
    if examined <= 0:
        found += (
            Finding(
                gate, "nothing-measured", gate, Outcome.INCONCLUSIVE, 0, 1,
                "Give the gate something to examine: an empty input is never a pass.",
            ),
        )  # fmt: skip
    outcome = fold(finding.outcome for finding in found) or Outcome.PASS
    return Verdict(gate, outcome, found, tuple(sorted((metrics or {}).items())))


def apply_waivers(verdict: Verdict, waivers: Iterable[Waiver], now_s: float) -> Verdict:
    """The verdict with each waived finding lowered to WARN; expired waivers do nothing."""
    in_force = {waiver.finding: waiver for waiver in waivers if now_s < waiver.until_s}
    findings = tuple(_waive(finding, in_force.get(finding.name)) for finding in verdict.findings)
    if findings == verdict.findings:
        return verdict
    outcome = fold(finding.outcome for finding in findings) or Outcome.PASS
    return dataclasses.replace(verdict, findings=findings, outcome=outcome)


def require_pass(verdict: Verdict, policy: GatePolicy) -> None:
    """Raise Blocked (FAIL) or Undecided (INCONCLUSIVE, ERROR) where the policy stops."""
    if not policy.stops(verdict):
        return
    # Of two that stop, the one that nobody can waive is what has to be mended first.
    worst = max(
        verdict.findings, key=lambda item: (item.outcome.severity, not item.waivable), default=None
    )
    where = worst.name if worst else verdict.gate
    detail = f": measured {worst.measured}, limit {worst.limit}" if worst else ""
    error = Undecided if verdict.outcome in (Outcome.INCONCLUSIVE, Outcome.ERROR) else Blocked
    raise error(
        f"the {verdict.gate} gate said {verdict.outcome.value}{detail}",
        where=where,
        remedy=worst.remedy if worst else "",
    )


def _waive(finding: Finding, waiver: Waiver | None) -> Finding:
    if waiver is None or not finding.waivable or finding.outcome <= Outcome.WARN:
        return finding
    return dataclasses.replace(
        finding,
        outcome=Outcome.WARN,
        remedy=f"Waived by {waiver.owner} ({waiver.reason}). {finding.remedy}",
    )
