"""One verdict of a run: what comparing encoders said, and the cells of the matrices that count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flows.compatibility.compare import Comparison, worst_of
from validators.compatibility.matrix import CompatibilityMatrix, Role, judge_matrix
from validators.compatibility.verdict import GATE
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude


def conclude_all(
    comparisons: list[Comparison],
    matrices: Sequence[CompatibilityMatrix],
    *,
    but: frozenset[Role] = frozenset(),
) -> Verdict:
    """The worst of all comparisons and of every cell between versions of other roles than `but`.

    A release fits its map and encodes its catalogue again, so a cell that only says REINDEX through
    the live map is a warning here, as it is in the release's own gate.
    """
    outer = worst_of(comparisons)
    cells = [finding for matrix in matrices for finding in _findings(matrix, but)]
    return conclude(
        GATE, (*outer.findings, *cells), examined=len(comparisons), metrics=dict(outer.metrics)
    )


def _findings(matrix: CompatibilityMatrix, but: frozenset[Role]) -> list[Finding]:
    chosen = [
        (cell.row, cell.column)
        for cell in matrix.cells
        if not but & {matrix.rows[cell.row].role, matrix.columns[cell.column].role}
    ]
    return [
        replace(finding, outcome=Outcome.WARN) if finding.code == "reindex" else finding
        for finding in judge_matrix(matrix, chosen).findings
    ]
