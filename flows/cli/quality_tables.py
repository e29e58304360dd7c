"""What `modalgate quality` prints for people."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from flows.cli.output import Document, console
from validators.contracts.digest import short


def show_written(document: Document) -> None:
    """Which files were written, and what is left to do."""
    folder = document["folder"]
    for name in document["written"]:
        console.print(f"wrote  {folder}/{name}.json")
    for name in document["kept"]:
        console.print(f"[dim]kept   {folder}/{name}.json[/]")
    if not document["in_use"]:
        console.print(f"Add to the pipeline file: gates: {{quality: {{suites: {folder}}}}}")


def show_checked(document: Document) -> None:
    """The folder's suites, how they were edited, and what the contracts say otherwise now."""
    if document["folder"] is None:
        console.print("The pipeline names no folder of suites: they are made from its contracts.")
        return
    for row in document["suites"]:
        console.print(f"{row['name']}: {row['expectations']} expectations")
        for line in row["contract"]:
            console.print(f"  [yellow]contract[/] {escape(line)}")
        for line in row["edits"]:
            console.print(f"  [cyan]edited[/] {escape(line)}")
    for item in document["findings"]:
        console.print(f"[yellow]{item.code}[/] {item.subject}: {item.remedy}")


def show_suites(document: Document) -> None:
    """A table a suite."""
    for suite in document["suites"]:
        source = "file" if suite["from_file"] else "made from the contract"
        table = Table(
            title=f"{suite['name']} ({source}, {short(suite['origin'])})", title_justify="left"
        )
        for column in ("finding", "column", "wanted", "of rows", "severity"):
            table.add_column(column)
        for item in suite["expectations"]:
            share = "all" if item["mostly"] == 1 else f"{item['mostly']:.4g}"
            table.add_row(
                item["code"], escape(item["column"]), escape(item["wanted"]), share,
                item["severity"].value,
            )  # fmt: skip
        console.print(table)
