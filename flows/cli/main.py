"""`modalgate`: the command line. A verb's module is imported when the verb is used.

Exit codes: 0 done, 2 bad input, 3 blocked by a gate, 4 awaiting review, 5 rolled back by the
canary, 6 a gate could not decide, 1 anything else.
"""

from __future__ import annotations

import importlib
import os

import click
import typer
from typer.core import TyperGroup

from flows.home import Home
from flows.orchestration import prepare

VERBS: dict[str, str] = {
    "release": "Take a pipeline through every gate to a running service.",
    "review": "List, show, approve and reject registered versions.",
    "deploy": "Bring an approved version up behind a canary.",
    "rollback": "Give the traffic back to the revision before.",
    "status": "Show what serves, and where.",
    "stop": "Stop a service of the local target.",
    "serve": "Serve a released bundle in the foreground.",
    "doctor": "Check backends, stores, registry and keys.",
    "schema": "Print the JSON schema of the pipeline file.",
}
"""Verb → its one-line help. The module `flows.cli.<verb>` holds `app`."""


class _Verbs(TyperGroup):
    """A group that knows its verbs without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"flows.cli.{cmd_name}")
        return typer.main.get_command(module.app)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


app = typer.Typer(
    cls=_Verbs,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    help="Release gates, engines and serving for multimodal models.",
)


@app.callback()
def main() -> None:
    """Release gates, engines and serving for multimodal models."""


def run() -> None:
    """The console script."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    prepare(Home.from_environment())
    app()
