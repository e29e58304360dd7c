"""`modalgate compat`: whether versions of encoders fit each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.compat_tables import show
from flows.cli.output import Document, answer, notices
from flows.cli.progress import progress_bars
from flows.compatibility.artifact import report_of
from flows.compatibility.compare import ITEMS, compare_sides
from flows.compatibility.conclusion import conclude_all
from flows.compatibility.flow import compatibility, conclude_run
from flows.compatibility.incident import REQUESTS, incident_matrix
from flows.compatibility.items import items_of
from flows.compatibility.meetings import measure_matrices
from flows.compatibility.schedule import live_services, schedules_of, serve_schedules
from flows.compatibility.sides import side_of
from flows.interruption import interruptible
from flows.orchestrated import orchestrated
from flows.retention import tidied
from flows.workspace import Workspace
from validators.compatibility.matrix import CompatibilityMatrix, judge_matrix, remedies
from validators.contracts.errors import BadInput, ModalgateError, NotFound

MATRIX = "matrix"
PIPELINE = "pipeline"

_USAGE = "Write: modalgate compat A B, compat matrix SERVICE, compat --all, or compat --incident."

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[A B | matrix SERVICE]",
        help="Two states of a service: service:version, service@champion, or a pipeline file.",
    ),
]
Count = Annotated[
    int | None, typer.Option(min=4, max=512, help="Samples (or requests) to compare on.")
]
Watch = Annotated[
    str | None,
    typer.Option(
        metavar="CRON|pipeline",
        help="With --all: run by this schedule, or by each pipeline's own, until stopped.",
    ),
]


def compat(
    words: Words = None,
    *,
    encoder: Annotated[str | None, typer.Option(help="Only this encoder.")] = None,
    items: Count = None,
    incident: Annotated[
        bool, typer.Option("--incident", help="The matrix of the committed example.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="All versions of what is live, and their matrices.")
    ] = False,
    service: Annotated[str | None, typer.Option(help="With --all: only this service.")] = None,
    candidate: Annotated[
        list[Path] | None,
        typer.Option(help="With --all --service: a pipeline file to compare too; repeatable."),
    ] = None,
    watch: Watch = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare two versions encoder by encoder, or show which versions fit which."""
    chosen = list(words or ())

    def work() -> Document:
        with progress_bars(notices, shown=not as_json), interruptible():
            if incident:
                return _incident(items or REQUESTS)
            if every:
                services = [service] if service else live_services(Workspace.open())
                files = [str(path.resolve()) for path in candidate or ()]
                return _all(services, files, items or ITEMS, watch)
            if len(chosen) == 2 and chosen[0] == MATRIX:
                return _stored(chosen[1])
            if len(chosen) == 2:
                return _pair((chosen[0], chosen[1]), encoder, items or ITEMS)
            raise BadInput("there is nothing to compare", where=" ".join(chosen), remedy=_USAGE)

    answer(work, show, as_json=as_json)


def _pair(words: tuple[str, str], encoder: str | None, count: int) -> Document:
    workspace = Workspace.open()
    with tidied(workspace):
        sides = side_of(workspace, words[0]), side_of(workspace, words[1])
        with items_of(workspace, sides) as found:
            comparisons = compare_sides(workspace, sides, found, encoder=encoder, count=count)
            # without a release of A there is no map into the common space to try B on
            released = sides[0].bundle is not None
            matrices = measure_matrices(workspace, sides[0], list(sides), found) if released else []
    return conclude_run(conclude_all(comparisons, matrices), {
        "comparisons": [item.document() for item in comparisons], **_matrix_part(matrices),
    })  # fmt: skip


def _incident(requests: int) -> Document:
    workspace = Workspace.open()
    matrix = incident_matrix(workspace.home.folder("engines", "work"), requests=requests)
    return conclude_run(judge_matrix(matrix), _matrix_part([matrix]))


def _stored(service: str) -> Document:
    report = report_of(Workspace.open(), service)
    return {"service": service, **_matrix_part(list(report.matrices))}


def _all(services: list[str], files: list[str], count: int, watch: str | None) -> Document:
    if not services:
        raise NotFound(
            "nothing is live", where="--all", remedy="Release something: modalgate release FILE"
        )
    if files and len(services) != 1:
        raise BadInput(
            "a candidate file belongs to one service", where="--candidate",
            remedy="Name it with --service.",
        )  # fmt: skip
    with orchestrated():
        if watch is not None:
            cron = None if watch == PIPELINE else watch
            schedules = schedules_of(Workspace.open(), services, cron)
            for name, expression in schedules.items():
                notices.print(f"{name}: {expression} (UTC)")
            serve_schedules(schedules)
            return {"schedules": schedules}
        return _each(services, files, count)


def _each(services: list[str], files: list[str], count: int) -> Document:
    """Every service, whatever the others say; the first that is stopped decides how this ends."""
    documents: list[dict[str, Any]] = []
    stopped: ModalgateError | None = None
    for name in services:
        try:
            documents.append(compatibility(name, candidates=files, items=count))
        except ModalgateError as error:
            documents.append({**error.attachment, "service": name, "error": error.document()})
            stopped = stopped or error
    document: dict[str, Any] = documents[0] if len(documents) == 1 else {"services": documents}
    if stopped is not None:
        stopped.attachment = document
        raise stopped
    return document


def _matrix_part(matrices: list[CompatibilityMatrix]) -> dict[str, Any]:
    return {
        "matrices": matrices,
        "remedies": [remedy for matrix in matrices for remedy in remedies(matrix)],
    }


def register(app: typer.Typer) -> None:
    app.command("compat")(compat)
