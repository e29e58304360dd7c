"""`modalgate engines`: what was built, what it is used for, whether it still holds."""

from __future__ import annotations

import contextlib
import time
from typing import Annotated, Any

import typer

from flows.build_engines import require_built, run_build_engines
from flows.builds.drain import reopen_failed
from flows.cli.engine_tables import (
    show_builds,
    show_engine,
    show_inspected,
    show_pruned,
    show_stored,
)
from flows.cli.output import Document, answer, notices
from flows.cli.progress import progress_bars
from flows.inspection import inspect_all
from flows.interruption import interruptible, told_to_end
from flows.inventory import StoredEngine, choose_engine, stored_engines
from flows.retain import GRACE_HOURS, run_retention
from flows.workspace import Workspace
from validators.contracts.documents import load
from validators.contracts.engine import ParityRecord
from validators.contracts.errors import BadInput, Conflict

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Key = Annotated[str, typer.Argument(help="The first digits of the key that `engines list` shows.")]
_LOOK_S = 2.0

engines = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@engines.command("list")
def list_engines(as_json: Json = False) -> None:
    """List every engine of the store, and what refers to it."""

    def work() -> Document:
        return {"engines": [_row(item) for item in stored_engines(Workspace.open())]}

    answer(work, show_stored, as_json=as_json)


@engines.command("show")
def show(key: Key, as_json: Json = False) -> None:
    """Show one engine: manifest, build times, profiles, parity, where it is used."""

    def work() -> Document:
        workspace = Workspace.open()
        found = choose_engine(workspace, key)
        parity = None
        if found.manifest is not None and found.manifest.parity is not None:
            data = workspace.store.get(found.manifest.parity)
            parity = load(ParityRecord, data, where=found.manifest.parity)
        return {"engine": _row(found), "manifest": found.manifest, "parity": parity}

    answer(work, show_engine, as_json=as_json)


@engines.command()
def verify(
    key: Annotated[str | None, typer.Argument(help="The first digits of a key.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every engine of the store.")] = False,
    as_json: Json = False,
) -> None:
    """Check signatures and bytes, and run each engine that this host can run."""

    def work() -> Document:
        if (key is None) is not every:
            raise BadInput(
                "nothing is said about which engine", where="KEY", remedy="Give a KEY, or --all."
            )
        workspace = Workspace.open()
        chosen = [choose_engine(workspace, key)] if key else list(stored_engines(workspace))
        with progress_bars(notices, shown=not as_json), interruptible():
            return inspect_all(workspace, chosen, told_to_end)

    answer(work, show_inspected, as_json=as_json)


@engines.command()
def prune(
    dry_run: Annotated[bool, typer.Option(help="Say what would go; remove nothing.")] = False,
    grace_hours: Annotated[float, typer.Option(help="Younger ones stay.")] = GRACE_HOURS,
    alone: Annotated[
        bool, typer.Option(help="No other machine writes to the store: remove objects as well.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove engines that no version, deployment or release refers to."""

    def work() -> Document:
        return run_retention(grace_hours, dry_run=dry_run, alone=alone)

    answer(work, show_pruned, as_json=as_json)


@engines.command()
def build(
    watch: Annotated[
        bool, typer.Option(help="Go on watching the queue until interrupted.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Let failed requests wait again, with all their tries.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Build the engines that gateways asked for, at low priority."""

    def work() -> Document:
        retried = {"retried": reopen_failed(Workspace.open())} if retry else {}
        with progress_bars(notices, shown=not as_json), interruptible():
            return require_built({**retried, **(_watch() if watch else run_build_engines())})

    answer(work, show_builds, as_json=as_json)


def _watch() -> dict[str, Any]:
    """Every build until somebody asks for the end."""
    done: list[dict[str, Any]] = []
    while not told_to_end():
        with contextlib.suppress(Conflict):  # another is at it: when it ends, the next is ours
            done += run_build_engines()["builds"]
        time.sleep(_LOOK_S)
    return {"builds": done}


def _row(item: StoredEngine) -> dict[str, Any]:
    manifest = item.manifest
    row: dict[str, Any] = {
        "key": item.key,
        "state": item.state,
        "use": item.use,
        "used_by": item.used_by,
        "problem": item.problem,
        "encoder": None, "backend": None, "backend_version": None, "precision": None,
        "target": None, "size_bytes": None, "profiles": None, "verified_on": None,
    }  # fmt: skip
    if manifest is None:
        return row
    spec, verified = manifest.spec, manifest.verified_on
    return row | {
        "encoder": spec.encoder,
        "backend": spec.backend,
        "backend_version": spec.backend_version,
        "precision": spec.precision,
        "target": spec.target.name,
        "size_bytes": manifest.size_bytes,
        "profiles": len(spec.profiles),
        "verified_on": verified.name if verified else None,
    }


def register(app: typer.Typer) -> None:
    app.add_typer(engines, name="engines", help="List, show, verify, prune and build engines.")
