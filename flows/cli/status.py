"""`modalgate status`: what serves, and where."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.deploy import show
from flows.cli.output import Document, answer
from flows.workspace import Workspace


def status(
    service: Annotated[str, typer.Argument(help="The service, as in the pipeline file.")],
    target: Annotated[str, typer.Option(help="The deployment target.")] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show what serves, and where."""

    def work() -> Document:
        found = Workspace.open().target(target).status(service)
        return {"service": service, "deployment": found}

    answer(work, show, as_json=as_json)


def register(app: typer.Typer) -> None:
    app.command("status")(status)
