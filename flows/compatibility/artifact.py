"""The matrix as an artifact: canonical JSON in the store, and readable copies for people.

The reference `compatibility/<service>` leads to the newest report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flows.workspace import Workspace
from infra.files import write_atomically
from validators.compatibility.matrix import Cell, CompatibilityMatrix, remedies
from validators.compatibility.paired import PairRetrieval
from validators.contracts.digest import Digest, canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import Conflict, NotFound
from validators.contracts.verdict import Verdict

JSON, TABLE = "compatibility-matrix.json", "compatibility-matrix.md"


@dataclass(frozen=True, slots=True)
class Report:
    """What one run of the flow found."""

    service: str
    verdict: Verdict
    matrices: tuple[CompatibilityMatrix, ...]


def keep_report(workspace: Workspace, report: Report) -> Digest:
    """Store the report, point the service's reference at it, write the copies."""
    store, name = workspace.store, f"compatibility/{report.service}"
    document = canonical_json(report)
    digest = store.put(document)
    while (seen := store.reference(name)) != digest:
        try:
            store.set_reference(name, digest, expected=seen)
        except Conflict:  # another run was first: the later one stands
            continue
    workspace.write_evidence(report.service, JSON, document)
    folder = workspace.home.folder("evidence", report.service)
    write_atomically(folder / TABLE, markdown(report.matrices).encode())
    return digest


def report_of(workspace: Workspace, service: str) -> Report:
    """The newest report of a service. Raises NotFound."""
    digest = workspace.store.reference(f"compatibility/{service}")
    if digest is None:
        raise NotFound(
            f"no compatibility matrix of {service!r} was made", where=service,
            remedy=f"Make it: modalgate compat --all --service {service}",
        )  # fmt: skip
    return load(Report, workspace.store.get(digest), where=digest)


def markdown(matrices: Sequence[CompatibilityMatrix]) -> str:
    """The matrices as tables of a Markdown page."""
    return "\n".join(line for matrix in matrices for line in _page(matrix))


def _page(matrix: CompatibilityMatrix) -> Iterator[str]:
    yield f"## {matrix.service}: {matrix.rows[0].encoder} by {matrix.columns[0].encoder}"
    yield ""
    yield f"| | {' | '.join(column.describe() for column in matrix.columns)} |"
    yield "|---" * (len(matrix.columns) + 1) + "|"
    for at, row in enumerate(matrix.rows):
        cells = (cell_text(matrix.cell(at, column)) for column in range(len(matrix.columns)))
        yield f"| {row.describe()} | {' | '.join(cells)} |"
    yield ""
    for remedy in remedies(matrix):
        yield (
            f"- {matrix.rows[remedy.row].describe()} with "
            f"{matrix.columns[remedy.column].describe()} is blocked. {remedy.sentence}"
        )
    yield ""


def cell_text(cell: Cell) -> str:
    """A cell in a few words: its word, and the figures that it rests on."""
    return "; ".join((word_text(cell), *figures(cell)))


def word_text(cell: Cell) -> str:
    return cell.word.value if cell.word is not None else cell.outcome.value


def figures(cell: Cell) -> Iterator[str]:
    """Rates with their intervals."""
    if cell.measured.crashed:
        yield cell.measured.crashed
    for run in cell.measured.runs:
        rate = run.rate
        yield (
            f"{run.precision.value}: {run.broken} of {run.requests} broken "
            f"({rate.low:.1%} to {rate.high:.1%})"
        )
    if cell.measured.retrieval is not None:
        yield recall_text(cell.measured.retrieval)


def recall_text(seen: PairRetrieval) -> str:
    share = seen.recall
    return (
        f"recall@{seen.k} {seen.hits} of {seen.queries} ({share.low:.0%} to {share.high:.0%}), "
        f"chance {seen.chance:.0%}, live {seen.reference_hits}, map fitted again "
        f"{seen.refitted_hits}"
    )
