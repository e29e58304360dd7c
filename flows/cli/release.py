"""`modalgate release`: a pipeline through every gate to a running service."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.builder import ensure_builder
from flows.cli.output import Document, answer, console, notices
from flows.cli.progress import progress_bars
from flows.cli.tables import show_deployment, show_engines, show_gates
from flows.home import Home
from flows.orchestrator import embedded_orchestrator
from flows.pipeline_reading import read_pipeline
from flows.release.flow import release as release_flow
from flows.workspace import actor
from validators.contracts.digest import short
from validators.contracts.errors import Unavailable


def release(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file.")],
    approve_as: Annotated[
        list[str] | None,
        typer.Option(help="Approve unattended under this name (local target only); repeatable."),
    ] = None,
    deploy: Annotated[bool, typer.Option(help="Deploy after the review.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Take a pipeline through every gate to a running service."""

    def work() -> Document:
        started = time.monotonic()
        with progress_bars(notices, shown=not as_json):
            document = run_release(pipeline, approve_as or [], deploy=deploy)
        if document.get("deployment") is not None:
            ensure_builder(Home.from_environment(), document["service"])
        return {**document, "duration_s": round(time.monotonic() - started, 3)}

    answer(work, show, as_json=as_json)


def run_release(pipeline: Path, approve_as: list[str], *, deploy: bool) -> dict[str, Any]:
    """The flow run; its document, or its ModalgateError."""
    read_pipeline(pipeline)  # a wrong file is said at once, before anything is started
    with embedded_orchestrator() as url, temporary_settings({PREFECT_API_URL: url} if url else {}):
        try:
            return release_flow(str(pipeline), author=actor(), approve_as=approve_as, deploy=deploy)
        except RuntimeError as error:
            if "Failed to reach API" not in str(error):  # as Prefect says it
                raise
            raise Unavailable(
                "the orchestrator does not answer",
                where=os.environ.get("PREFECT_API_URL", ""),
                remedy="Start that server, or unset PREFECT_API_URL to use an embedded one.",
            ) from error
        finally:  # what was seen is told before the server goes, or the exit waits for it
            APILogWorker.drain_all(timeout=10)
            EventsWorker.drain_all(timeout=10)


def show(document: Document) -> None:
    """The closing table: gates, engines, version, deployment, where to look."""
    if document.get("verdicts"):
        show_gates(console, document["verdicts"])
    if document.get("engines"):
        show_engines(console, document["engines"])
    if document.get("bundle"):
        version = document["model_version"]
        console.print(f"bundle      {short(document['bundle'])}")
        console.print(f"version     {version['name']} {version['version']}")
        show_deployment(console, document.get("deployment"))
    if "service" in document:
        console.print(f"evidence    {_evidence(document['service'])}")
    if document.get("unchanged"):
        console.print("[green]nothing changed: no step was done again, no engine was built[/]")
    if "duration_s" in document:
        console.print(f"took        {document['duration_s']:.1f} s")


def _evidence(service: str) -> str:
    """The folder of readable evidence, as a person would type it."""
    folder = Home.from_environment().root / "evidence" / service
    home = Path.home()
    return f"~/{folder.relative_to(home)}" if folder.is_relative_to(home) else str(folder)


def register(app: typer.Typer) -> None:
    app.command("release")(release)
