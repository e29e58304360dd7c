"""`modalgate rollback`: the traffic back to the revision before."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.deploy import show
from flows.cli.output import Document, answer
from flows.rollout import roll_back
from flows.workspace import Workspace


def rollback(
    service: Annotated[str, typer.Argument(help="The service, as in the pipeline file.")],
    reason: Annotated[str, typer.Option(help="Why, for the ledger.")],
    target: Annotated[str, typer.Option(help="The deployment target.")] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Give the traffic back to the revision before, which is pinned by digest."""

    def work() -> Document:
        status = roll_back(Workspace.open(), service, target, reason)
        return {"service": service, "deployment": status}

    answer(work, show, as_json=as_json)


def register(app: typer.Typer) -> None:
    app.command("rollback")(rollback)
