"""`modalgate demo`: the reference service, released and asked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.output import console
from flows.examples.storefront.demo import demonstrate


def demo(
    keep: Annotated[bool, typer.Option(help="Leave the service running.")] = False,
    record: Annotated[
        Path | None, typer.Option(help="Write what is shown to this SVG file.")
    ] = None,
) -> None:
    """Release the reference service, ask it things, and show the answers."""
    console.record = record is not None
    code = demonstrate(keep=keep)
    if record is not None:
        # Without its fonts' address: whoever opens the picture fetches nothing.
        drawn = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="make demo"), flags=re.S)
        record.write_text(drawn, encoding="utf-8")
    raise typer.Exit(code)


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)
