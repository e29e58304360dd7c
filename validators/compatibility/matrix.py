"""The matrix: every pair of versions of two encoders with its word, and the way out of a block.

Here names meet verdicts: cells were judged without them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from validators.compatibility.measured import CompatibilityWord
from validators.compatibility.paired import PairMeasurement
from validators.compatibility.pairing import GATE, PAIR, Judgement, PairSettings, judge_pair
from validators.contracts.errors import BadInput
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude


class Role(enum.Enum):
    """Where a version stands in its service."""

    ROLLBACK = "rollback"
    LIVE = "live"
    CANDIDATE = "candidate"
    KNOWN = "known"  # registered, neither of these


@dataclass(frozen=True, slots=True)
class Version:
    """A version of an encoder, by the names that people know. Listed oldest first."""

    encoder: str
    version: str
    role: Role = Role.KNOWN

    def describe(self) -> str:
        return f"{self.encoder} {self.version}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One pair: what it was judged to be, and the figures behind that."""

    row: int
    column: int
    word: CompatibilityWord | None
    outcome: Outcome
    measured: PairMeasurement
    findings: tuple[Finding, ...]
    metrics: tuple[tuple[str, float], ...]

    @property
    def passes(self) -> bool:
        """Whether the pair may serve as it is."""
        return self.word is CompatibilityWord.COMPATIBLE and self.outcome <= Outcome.WARN

    def metric(self, name: str) -> float | None:
        return dict(self.metrics).get(name)


@dataclass(frozen=True, slots=True)
class CompatibilityMatrix:
    """Versions of one encoder (rows) by versions of another one (columns), oldest first."""

    service: str
    rows: tuple[Version, ...]
    columns: tuple[Version, ...]
    cells: tuple[Cell, ...]
    requests: int  # behind each cell

    def cell(self, row: int, column: int) -> Cell:
        """Raises BadInput where the matrix has no such cell."""
        for cell in self.cells:
            if (cell.row, cell.column) == (row, column):
                return cell
        raise BadInput(f"the matrix of {self.service} has no cell {row}, {column}")

    def find(self, row: str, column: str) -> Cell:
        """The cell of two versions by their numbers."""
        rows = [item.version for item in self.rows]
        columns = [item.version for item in self.columns]
        if row not in rows or column not in columns:
            raise BadInput(
                f"the matrix of {self.service} has no pair {row} and {column}",
                remedy=f"Rows are {', '.join(rows)}; columns {', '.join(columns)}.",
            )
        return self.cell(rows.index(row), columns.index(column))


@dataclass(frozen=True, slots=True)
class Remedy:
    """The smallest change that leads out of a blocked cell: one version replaced."""

    row: int
    column: int
    replaced: Version
    by: Version
    sentence: str


def fill(
    service: str,
    rows: Sequence[Version],
    columns: Sequence[Version],
    measured: Mapping[tuple[int, int], PairMeasurement],
    settings: PairSettings | None = None,
) -> CompatibilityMatrix:
    """Judge every measured pair, then attach the names.

    Raises:
        BadInput: a pair was not measured.
    """
    missing = [
        (row, column)
        for row in range(len(rows))
        for column in range(len(columns))
        if (row, column) not in measured
    ]
    if missing:
        raise BadInput(
            f"{len(missing)} pairs of the matrix were not measured", where=service,
            remedy="Give every pair a measurement; one that crashed says so.",
        )  # fmt: skip
    cells = tuple(
        _cell((row, column), (rows[row], columns[column]), measured[row, column], settings)
        for row in range(len(rows))
        for column in range(len(columns))
    )
    requests = max((_requests(cell.measured) for cell in cells), default=0)
    return CompatibilityMatrix(service, tuple(rows), tuple(columns), cells, requests)


def remedies(matrix: CompatibilityMatrix) -> tuple[Remedy, ...]:
    """For each blocked cell, the one change that leads to a cell that passes, if there is any."""
    blocked = (cell for cell in matrix.cells if cell.word is CompatibilityWord.BLOCK)
    found = (_remedy(matrix, cell) for cell in blocked)
    return tuple(remedy for remedy in found if remedy is not None)


def alternatives(matrix: CompatibilityMatrix, cell: Cell) -> list[Cell]:
    """Passing cells one replacement away, best first.

    A newer version rather than an older one; a cell without warnings of a narrow margin rather than
    one with them (finite by luck is no remedy); then the newest version.
    """
    near = [
        other
        for other in matrix.cells
        if other.passes and (other.row == cell.row) != (other.column == cell.column)
    ]

    def key(other: Cell) -> tuple[bool, bool, float, int, bool]:
        ahead = (other.row - cell.row) + (other.column - cell.column)
        return ahead < 0, bool(other.findings), _flushed(other), -ahead, other.column == cell.column

    return sorted(near, key=key)


def judge_matrix(
    matrix: CompatibilityMatrix, cells: Sequence[tuple[int, int]] | None = None
) -> Verdict:
    """The worst of the cells (of all, or of those that serve or would); blocks name the way out."""
    chosen = [cell for cell in matrix.cells if cells is None or (cell.row, cell.column) in cells]
    ways = {(item.row, item.column): item.sentence for item in remedies(matrix)}
    findings = [
        replace(finding, remedy=ways.get((cell.row, cell.column), finding.remedy))
        if finding.outcome is Outcome.FAIL
        else finding
        for cell in chosen
        for finding in cell.findings
    ]
    return conclude(GATE, findings, examined=sum(_requests(cell.measured) for cell in chosen))


def _remedy(matrix: CompatibilityMatrix, cell: Cell) -> Remedy | None:
    ways = alternatives(matrix, cell)
    if not ways:
        return None
    best = ways[0]
    changed_row = best.row != cell.row
    old, new = (
        (matrix.rows[cell.row], matrix.rows[best.row])
        if changed_row
        else (matrix.columns[cell.column], matrix.columns[best.column])
    )
    kept = matrix.columns[cell.column] if changed_row else matrix.rows[cell.row]
    sentence = f"Take {new.describe()} in place of {old.version} beside {kept.describe()}."
    return Remedy(cell.row, cell.column, old, new, sentence)


def _cell(
    place: tuple[int, int],
    versions: tuple[Version, Version],
    measured: PairMeasurement,
    settings: PairSettings | None,
) -> Cell:
    judged: Judgement = judge_pair(measured, settings)
    verdict = judged.verdict
    names = " x ".join(version.describe() for version in versions)
    return Cell(
        *place, judged.word, verdict.outcome, measured,
        tuple(_named(verdict.findings, names)), verdict.metrics,
    )  # fmt: skip


def _named(findings: Sequence[Finding], names: str) -> Iterator[Finding]:
    for finding in findings:
        rest = finding.subject.removeprefix(PAIR) if finding.subject.startswith(PAIR) else ""
        yield replace(finding, subject=names + rest)


def _requests(measured: PairMeasurement) -> int:
    counts = [run.requests for run in measured.runs]
    if measured.retrieval is not None:
        counts.append(measured.retrieval.queries)
    return max(counts, default=0)


def _flushed(cell: Cell) -> float:
    return max((run.flushed_share for run in cell.measured.runs), default=0.0)
