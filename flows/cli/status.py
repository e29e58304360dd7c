"""`modalgate status`: what serves, where, and which engines are still to come."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from flows.builder import builder_state
from flows.cli.deploy import show
from flows.cli.output import Document, answer, console
from flows.workspace import Workspace
from validators.contracts.builds import BuildState


def status(
    service: Annotated[str, typer.Argument(help="The service, as in the pipeline file.")],
    target: Annotated[str, typer.Option(help="The deployment target.")] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show what serves, and where."""

    def work() -> Document:
        workspace = Workspace.open()
        found = workspace.target(target).status(service)
        return {
            "service": service,
            "deployment": found,
            "builds": _builds(workspace, service),
            "builder": builder_state(workspace.home, service),
        }

    answer(work, _show, as_json=as_json)


def _builds(workspace: Workspace, service: str) -> list[dict[str, Any]]:
    """What gateways asked for that is not served yet, oldest first."""
    return [
        {
            "encoder": build.request.encoder,
            "sizes": dict(build.request.sizes),
            "state": build.state,
            "tries": build.tries,
            "message": build.message,
        }
        for build in workspace.builds.builds(service)
        if build.state is not BuildState.DONE
    ]


def _show(document: Document) -> None:
    show(document)
    for row in document.get("builds", ()):
        sizes = ", ".join(f"{name} {size}" for name, size in row["sizes"].items())
        note = f": {row['message']}" if row["message"] else ""
        console.print(f"engine      {row['state'].value} for {row['encoder']} at {sizes}{note}")
    states = {row["state"] for row in document.get("builds", ())}
    if BuildState.WAITING in states and not document["builder"]["running"]:
        console.print(
            "builder     none runs beside the gateway, so that what waits goes on waiting"
        )
        console.print(
            "            build: modalgate engines build --watch, or start one: "
            f"modalgate deploy {document['service']}"
        )
    if BuildState.FAILED in states:
        console.print("            try again what failed: modalgate engines build --retry")
    if states & {BuildState.WAITING, BuildState.FAILED} and document["builder"]["last_said"]:
        console.print(f"builder     said: {document['builder']['last_said']}", markup=False)


def register(app: typer.Typer) -> None:
    app.command("status")(status)
