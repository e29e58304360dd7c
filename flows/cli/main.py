"""`modalgate`: the command line. A verb's module is imported when the verb is used.

Exit codes: 0 done, 2 bad input, 3 blocked by a gate, 4 awaiting review, 5 rolled back by the
canary, 6 a gate could not decide, 1 anything else.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence

import typer

from flows.cli.exits import BAD_INPUT
from flows.cli.output import answered, refuse
from flows.home import Home
from flows.orchestration import prepare
from validators.contracts.errors import BadInput, ModalgateError

VERBS: dict[str, str] = {
    "release": "Take a pipeline through every gate to a running service.",
    "review": "List, show, approve and reject registered versions.",
    "deploy": "Bring an approved version up behind a canary.",
    "rollback": "Give the traffic back to the revision before.",
    "status": "Show what serves, and where.",
    "stop": "Stop a service of the local target.",
    "serve": "Serve a released version in the foreground.",
    "lineage": "Show what a service, a sample or any digest came from.",
    "engines": "List, show, verify, prune and build engines.",
    "quality": "Write, check and show suites of data quality.",
    "drift": "Watch live traffic for drift, and say what moved.",
    "compat": "Tell whether versions of encoders fit each other.",
    "doctor": "Check backends, stores, registry and keys.",
    "ctal": "Show where the tracks of recordings lost sync.",
    "schema": "Print the JSON schema of the pipeline file.",
    "demo": "Release the reference service and ask it things.",
}
"""Verb → its one line of help. The module `flows.cli.<verb>` has `register(app)`."""

_STATELESS = ("schema", "ctal", "quality")
"""Verbs that need no state folder."""


def build(arguments: Sequence[str]) -> typer.Typer:
    """The application, with the verb that the arguments name fully there, the others by name."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help="Release gates, engines and serving for multimodal models.",
        epilog="Exit codes: 0 done, 2 bad input, 3 blocked by a gate, 4 awaiting review, "
        "5 rolled back, 6 a gate could not decide, 1 anything else.",
    )

    @app.callback()
    def modalgate() -> None:
        """Release gates, engines and serving for multimodal models."""

    named = _verb(arguments)
    completing = "_MODALGATE_COMPLETE" in os.environ
    for verb, text in VERBS.items():
        if verb == named or completing:
            importlib.import_module(f"flows.cli.{verb}").register(app)
        else:
            app.command(verb, help=text)(_absent(verb))
    return app


def _absent(verb: str) -> Callable[[], None]:
    def command() -> None:
        raise RuntimeError(f"{verb} was not imported")

    return command


def run() -> None:
    """The console script."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    arguments = sys.argv[1:]
    try:
        if _verb(arguments) in VERBS and _verb(arguments) not in _STATELESS:
            prepare(Home.from_environment())
        build(arguments)()
    except ModalgateError as error:  # before any verb could answer: the state folder
        refuse(error, as_json="--json" in arguments)
    except SystemExit as ended:
        if ended.code == BAD_INPUT and "--json" in arguments and not answered():
            what, remedy = "the command line is wrong", "Read: modalgate VERB --help"
            refuse(BadInput(what, where=" ".join(arguments), remedy=remedy), as_json=True)
        raise


def _verb(arguments: Sequence[str]) -> str | None:
    return next((word for word in arguments if not word.startswith("-")), None)
