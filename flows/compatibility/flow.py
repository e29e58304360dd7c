"""The compatibility flow: what serves, what served before, and what would, by the clock or by hand.

Every encoder of every other version is compared with the live one, and the matrix of encoders that
meet in a common space is filled. The report is kept whatever it says; a verdict that stops a
release ends the run as failed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from flows.compatibility.artifact import Report, keep_report
from flows.compatibility.compare import ITEMS, Comparison, compare_sides
from flows.compatibility.conclusion import conclude_all
from flows.compatibility.items import Items, items_of
from flows.compatibility.meetings import measure_matrices
from flows.compatibility.sides import ROLES, Side, side_of_file, side_of_version
from flows.interruption import interruptible
from flows.release.register import CANDIDATE, CHAMPION, ROLLBACK
from flows.retention import tidied
from flows.workspace import Workspace
from validators.compatibility.matrix import Role, remedies
from validators.contracts.errors import Blocked, NotFound, Undecided
from validators.contracts.verdict import GatePolicy, Verdict, require_pass


@flow(name="compatibility", validate_parameters=False)
def compatibility(
    service: str, candidates: list[str] | None = None, items: int = ITEMS
) -> dict[str, Any]:
    """Compare all versions of a service that serve, served or would serve.

    Args:
        service: as in the pipeline file.
        candidates: pipeline files that were not released yet.
        items: samples that two versions of an encoder are compared on.

    Raises:
        NotFound: nothing of the service serves.  Blocked, Undecided: a candidate does not fit.
    """
    workspace = Workspace.open()
    with tidied(workspace), interruptible():
        sides = sides_of_service(workspace, service, candidates or [])
        live = next(side for side in sides if side.role is Role.LIVE)
        with items_of(workspace, [live]) as found:
            comparisons = _compare_all(workspace, live, sides, found, items)
            matrices = measure_matrices(workspace, live, sides, found)
        # what served before goes with nothing that would
        verdict = conclude_all(comparisons, matrices, but=frozenset({Role.ROLLBACK}))
        report = Report(service, verdict, tuple(matrices))
        digest = keep_report(workspace, report)
    return conclude_run(report.verdict, {
        "service": service,
        "report": digest,
        "comparisons": [item.document() for item in comparisons],
        "matrices": matrices,
        "remedies": [remedy for matrix in matrices for remedy in remedies(matrix)],
    })  # fmt: skip


def conclude_run(verdict: Verdict, document: dict[str, Any]) -> dict[str, Any]:
    """The document; where the verdict stops a release, an error that carries it."""
    try:
        require_pass(verdict, GatePolicy())
    except (Blocked, Undecided) as error:
        error.attachment = document
        raise
    return document


def sides_of_service(workspace: Workspace, service: str, candidates: list[str]) -> list[Side]:
    """Rollback, live and candidate versions, oldest first, then the files.

    Raises:
        NotFound: no version of the service is live, or no such file.
    """
    sides: dict[str, Side] = {}
    for alias in (ROLLBACK, CHAMPION, CANDIDATE):
        version = workspace.registry.alias(service, alias)
        if version is not None and (version.version not in sides or alias == CHAMPION):
            sides[version.version] = side_of_version(workspace, version, ROLES[alias])
    if not any(side.role is Role.LIVE for side in sides.values()):
        raise NotFound(
            f"no version of {service!r} is live", where=service,
            remedy="Release it first: modalgate release pipeline.yaml",
        )  # fmt: skip
    ordered = [sides[number] for number in sorted(sides, key=int)]
    return ordered + [side_of_file(workspace, Path(path)) for path in candidates]


def _compare_all(
    workspace: Workspace, live: Side, sides: list[Side], found: Items, count: int
) -> list[Comparison]:
    """Each candidate against what serves; a rollback target is what served before it."""
    comparisons: list[Comparison] = []
    for side in sides:
        if side is live:
            continue
        pair = (side, live) if side.role is Role.ROLLBACK else (live, side)
        comparisons += compare_sides(workspace, pair, found, count=count)
    return comparisons or compare_sides(workspace, (live, live), found, count=count)
