"""`modalgate schema`: the pipeline file's JSON schema, for editors."""

from __future__ import annotations

import json

import typer

from validators.contracts.pipeline_file import pipeline_schema


def schema() -> None:
    """Print the JSON schema of pipeline.yaml."""
    typer.echo(json.dumps(pipeline_schema(), indent=2, ensure_ascii=False))


def register(app: typer.Typer) -> None:
    app.command("schema")(schema)
