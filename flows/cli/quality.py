"""`modalgate quality`: the suites of a pipeline as files: write them, check them, show them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.output import Document, answer
from flows.cli.quality_tables import show_checked, show_suites, show_written
from flows.pipeline_reading import read_pipeline
from flows.quality.suite_folder import USUAL_FOLDER, read_folder, suite_names, write_folder
from validators.contracts.errors import NotFound
from validators.quality.contract import contract_suites
from validators.quality.naming import code_of, wanted_by
from validators.quality.staleness import changed_facts, edits, judge_files
from validators.quality.words import Suite

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
File = Annotated[Path, typer.Argument(help="The pipeline file.")]

quality = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@quality.command()
def init(
    pipeline: File,
    force: Annotated[
        bool, typer.Option("--force", help="Write files that are there anew; edits are lost.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write the suites that the contracts make into the pipeline's folder of suites."""

    def work() -> Document:
        found = read_pipeline(pipeline)
        suite_names(found)
        base = pipeline.resolve().parent
        written, kept = write_folder(found, base, contract_suites(found), force=force)
        return {
            "folder": found.gates.quality.suites or USUAL_FOLDER,
            "in_use": found.gates.quality.suites is not None,
            "written": written,
            "kept": kept,
        }

    answer(work, show_written, as_json=as_json)


@quality.command()
def check(pipeline: File, as_json: Json = False) -> None:
    """Check the files of the folder, and tell where the contracts have moved on."""

    def work() -> Document:
        found = read_pipeline(pipeline)
        made = contract_suites(found)
        files = read_folder(found, pipeline.resolve().parent)
        notes = list(judge_files(files, made)) if found.gates.quality.suites else []
        return {
            "folder": found.gates.quality.suites,
            "findings": notes,
            "suites": [
                {
                    "name": name,
                    "expectations": len(suite.expectations),
                    "contract": changed_facts(suite, made[name]) if name in made else [],
                    "edits": edits(suite, made[name]) if name in made else [],
                }
                for name, suite in sorted(files.items())
            ],
        }

    answer(work, show_checked, as_json=as_json)


@quality.command()
def show(
    pipeline: File,
    suite: Annotated[str | None, typer.Argument(help="One suite: samples, or a modality.")] = None,
    as_json: Json = False,
) -> None:
    """Show the expectations that a release would be judged by."""

    def work() -> Document:
        found = read_pipeline(pipeline)
        files = read_folder(found, pipeline.resolve().parent)
        suites = contract_suites(found) | files
        if suite is not None and suite not in suites:
            raise NotFound(
                f"there is no suite called {suite!r}",
                where=str(pipeline),
                remedy=f"Name one of: {', '.join(suites)}.",
            )
        return {
            "suites": [
                _row(item, from_file=name in files)
                for name, item in suites.items()
                if suite in (None, name)
            ]
        }

    answer(work, show_suites, as_json=as_json)


def _row(suite: Suite, *, from_file: bool) -> dict[str, Any]:
    return {
        "name": suite.name,
        "from_file": from_file,
        "origin": suite.origin,
        "contract": dict(suite.facts),
        "expectations": [
            {
                "code": code_of(item),
                "type": item.type,
                "column": item.column,
                "wanted": wanted_by(item),
                "mostly": item.mostly,
                "severity": item.severity,
            }
            for item in suite.expectations
        ],
    }


def register(app: typer.Typer) -> None:
    app.add_typer(quality, name="quality", help="Write, check and show suites of data quality.")
