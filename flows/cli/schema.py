"""`modalgate schema`: JSON schemas of what people write and of what the platform writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from flows.cli.exits import BAD_INPUT
from services.ingest.alignment_reader import alignment_schema
from validators.contracts.pipeline_file import pipeline_schema

SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "pipeline": pipeline_schema,
    "ctal": alignment_schema,
}
"""What may be named, and what makes it."""


def schema(
    name: Annotated[
        str, typer.Argument(help="pipeline: pipeline.yaml; ctal: a line of the alignment log.")
    ] = "pipeline",
) -> None:
    """Print a JSON schema, that of pipeline.yaml where no other is named."""
    if name not in SCHEMAS:
        typer.echo(f"there is no schema {name!r}: take one of {', '.join(SCHEMAS)}", err=True)
        raise typer.Exit(BAD_INPUT)
    typer.echo(json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False))


def register(app: typer.Typer) -> None:
    app.command("schema")(schema)
