"""`modalgate doctor`: what works on this machine."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from flows.cli.output import Document, answer, console
from flows.doctor import examine_backends, examine_dependencies
from flows.workspace import Workspace
from validators.contracts.digest import plain
from validators.contracts.errors import Unavailable


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Try every backend and dependency, and say what to do about what does not work."""

    def work() -> Document:
        dependencies = examine_dependencies(Workspace.open())
        document = {
            "backends": examine_backends(),
            "dependencies": {name: plain(health) for name, health in dependencies.items()},
        }
        sick = [name for name, health in dependencies.items() if not health.healthy]
        if sick:
            error = Unavailable(
                f"{', '.join(sick)} cannot be used: {dependencies[sick[0]].reason}",
                where=sick[0],
                remedy=dependencies[sick[0]].remedy,
            )
            error.attachment = dict(document)
            raise error
        return document

    answer(work, show, as_json=as_json)


def show(document: Document) -> None:
    table = Table(title="Backends and dependencies", title_justify="left")
    for column in ("name", "works", "why"):
        table.add_column(column)
    for name, backend in document["backends"].items():
        runs = "builds and runs" if backend["can_run"] else "builds"
        works = f"[green]{runs}[/]" if backend["available"] else "[yellow]no[/]"
        table.add_row(name, works, f"{backend['version']} {backend['reason']}".strip())
    for name, health in document["dependencies"].items():
        works = "[green]yes[/]" if health["healthy"] else "[red]no[/]"
        table.add_row(name, works, health["reason"])
    console.print(table)


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)
