"""`modalgate stop`: end a service of the local target."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.builder import stop_builder
from flows.cli.deploy import show
from flows.cli.output import Document, answer
from flows.workspace import Workspace


def stop(
    service: Annotated[str, typer.Argument(help="The service, as in the pipeline file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Drain and end a service of this machine; `deploy` brings it up again."""

    def work() -> Document:
        workspace = Workspace.open()
        target = workspace.target("local")
        target.stop(service)
        stop_builder(workspace.home, service)
        return {"service": service, "deployment": target.status(service)}

    answer(work, show, as_json=as_json)


def register(app: typer.Typer) -> None:
    app.command("stop")(stop)
