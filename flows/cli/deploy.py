"""`modalgate deploy`: an approved version behind a canary."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.builder import ensure_builder
from flows.cli.output import Document, answer, console, notices
from flows.cli.progress import progress_bars
from flows.cli.tables import show_deployment, show_gates
from flows.documents import verdict_rows
from flows.lineage.tell import tell_version
from flows.review import registered
from flows.rollout import roll_out
from flows.workspace import Workspace


def deploy(
    service: Annotated[str, typer.Argument(help="The service, as in the pipeline file.")],
    version: Annotated[
        str | None, typer.Argument(help="The version number; default: the newest.")
    ] = None,
    probe: Annotated[
        bool, typer.Option(help="Send the release's own probes as traffic during the canary.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Bring an approved version up behind a canary, then promote it or roll it back."""

    def work() -> Document:
        workspace = Workspace.open()
        with progress_bars(notices, shown=not as_json):
            found = registered(workspace, service, version)
            ended = roll_out(workspace, found, probe=probe)
        tell_version(workspace, found.version)
        ensure_builder(workspace.home, service)
        return {
            "service": service,
            "model_version": {"name": service, "version": found.version.version},
            "bundle": found.version.bundle,
            "verdicts": verdict_rows([ended.verdict] if ended.verdict else []),
            "deployment": ended.status,
        }

    answer(work, show, as_json=as_json)


def show(document: Document) -> None:
    if document.get("verdicts"):
        show_gates(console, document["verdicts"])
    show_deployment(console, document.get("deployment"))


def register(app: typer.Typer) -> None:
    app.command("deploy")(deploy)
