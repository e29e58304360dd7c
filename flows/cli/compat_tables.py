"""What `modalgate compat` prints for people: words, figures with intervals, the matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.cli.output import Document, console
from flows.cli.tables import COLOURS
from flows.compatibility.artifact import figures, word_text
from validators.compatibility.matrix import Cell, CompatibilityMatrix, Remedy
from validators.compatibility.measured import CompatibilityWord, Geometry, StaticDifference
from validators.contracts.verdict import Finding, Outcome

WORDS = {
    CompatibilityWord.COMPATIBLE: "green",
    CompatibilityWord.ADAPTER: "yellow",
    CompatibilityWord.REINDEX: "magenta",
    CompatibilityWord.BLOCK: "red",
}
_SHOWN = 12


def show(document: Document) -> None:
    """Everything that the document has."""
    for part in document.get("services", [document]):
        for comparison in part.get("comparisons", ()):
            show_comparison(console, comparison)
        for matrix in part.get("matrices", ()):
            show_matrix(console, matrix, part.get("remedies", ()))
        if part.get("report"):
            console.print(f"report      {part['report'][7:19]} of {part['service']}")


def show_comparison(console: Console, comparison: Mapping[str, Any]) -> None:
    """One encoder in two versions."""
    word: CompatibilityWord | None = comparison["word"]
    outcome: Outcome = comparison["outcome"]
    said = f"[{WORDS[word]}]{word.value}[/]" if word else f"[{COLOURS[outcome.value]}]unknown[/]"
    console.print(
        f"[bold]{comparison['encoder']}[/]  {comparison['old']} → {comparison['new']}  "
        f"{said} ({outcome.value})"
    )
    if "identical" in comparison["metrics"]:
        console.print("  the same model, contract and preprocessing\n")
        return
    _show_differences(console, comparison["differences"])
    _show_precisions(console, comparison["metrics"])
    _show_geometries(console, comparison["geometries"])
    for record in comparison["adapters"]:
        console.print(f"  adapter {record.measured.kind.value} of {record.output} is registered")
    _show_findings(console, comparison["findings"])


def show_matrix(console: Console, matrix: CompatibilityMatrix, remedies: Sequence[Remedy]) -> None:
    """Rows by columns, a cell each; below it the way out of each block."""
    table = Table(
        title=f"{matrix.service}: {matrix.rows[0].encoder} by {matrix.columns[0].encoder}",
        title_justify="left",
        show_lines=True,
    )
    table.add_column("")
    for column in matrix.columns:
        table.add_column(f"{column.describe()}\n[dim]{column.role.value}[/]")
    for at, row in enumerate(matrix.rows):
        cells = [_cell(matrix.cell(at, place)) for place in range(len(matrix.columns))]
        table.add_row(f"{row.describe()}\n[dim]{row.role.value}[/]", *cells)
    console.print(table)
    for remedy in remedies:
        if remedy.replaced in (*matrix.rows, *matrix.columns):
            console.print(f"[green]do[/]    {remedy.sentence}")


def _cell(cell: Cell) -> str:
    colour = WORDS[cell.word] if cell.word else COLOURS[cell.outcome.value]
    lines = [f"[{colour}]{word_text(cell)}[/]", *figures(cell)]
    lines += [f"[dim]{code}[/]" for code in dict.fromkeys(item.code for item in cell.findings)]
    return "\n".join(lines)


def _show_differences(console: Console, differences: Sequence[StaticDifference]) -> None:
    if not differences:
        return
    table = Table("declared or built differently", "old", "new", title_justify="left")
    for item in differences[:_SHOWN]:
        table.add_row(*(escape(text) for text in (item.what, item.old, item.new)))
    console.print(table)
    if len(differences) > _SHOWN:
        console.print(f"  and {len(differences) - _SHOWN} more")


def _show_precisions(console: Console, metrics: Mapping[str, float]) -> None:
    """Shares of items with NaN or infinity, by precision that was really computed."""
    suffix = "_nonfinite_items_share"
    names = [name.removesuffix(suffix) for name in metrics if name.endswith(suffix)]
    if not names:
        return
    table = Table("precision", "items with NaN or infinity", "at most, 95 %", title_justify="left")
    for name in names:
        bound = metrics[f"{name}_nonfinite_items_upper_share"]
        table.add_row(name, f"{metrics[name + suffix]:.1%}", f"{bound:.1%}")
    console.print(table)


def _show_geometries(console: Console, geometries: Sequence[Geometry]) -> None:
    for item in geometries:
        table = Table(
            f"embedding {item.output}, {item.items} items", "value", "95 % interval",
            title_justify="left",
        )  # fmt: skip
        rows = [
            ("cosine of old and new", item.cosine),
            ("rank correlation of similarities", item.rank_correlation),
            (f"{item.neighbours} nearest neighbours in common", item.overlap),
            *((f"{found.queries} finds {found.index}, first", found.first)
              for found in item.retrievals),
            ("right before, right with new on old", item.kept),
            ("right before, right through a map", item.adapted),
            ("right before, wrong when mixed", item.flips_mixed),
            ("right before, wrong when encoded again", item.flips_reindexed),
        ]  # fmt: skip
        for name, estimate in rows:
            if estimate is None:
                table.add_row(name, "dimensions differ", "")
            else:
                table.add_row(
                    name, f"{estimate.value:.3f}", f"{estimate.low:.3f} to {estimate.high:.3f}"
                )
        console.print(table)


def _show_findings(console: Console, findings: Sequence[Finding]) -> None:
    """The worst first, each with what to do."""
    worst = sorted(findings, key=lambda item: -item.outcome.severity)
    for item in worst[:_SHOWN]:
        colour = COLOURS[item.outcome.value]
        console.print(f"  [{colour}]{item.outcome.value}[/] {item.code} ({escape(item.subject)})")
        console.print(
            f"       measured {escape(str(item.measured))}; limit {escape(str(item.limit))}",
            soft_wrap=True,
        )
        console.print(f"       [green]do[/] {escape(item.remedy)}", soft_wrap=True)
    if len(findings) > _SHOWN:
        console.print(f"  and {len(findings) - _SHOWN} more")
    console.print()
