"""`modalgate schema`: the pipeline file's JSON schema, for editors."""

from __future__ import annotations

import json

import typer

from validators.contracts.pipeline_file import pipeline_schema

app = typer.Typer()


@app.command()
def schema() -> None:
    """Print the JSON schema of pipeline.yaml."""
    typer.echo(json.dumps(pipeline_schema(), indent=2, ensure_ascii=False))
