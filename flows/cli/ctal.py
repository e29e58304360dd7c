"""`modalgate ctal`: where the tracks of a recording lost sync, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from flows.cli.output import Document, answer, console
from services.ingest.alignment_report import FoundLoss, Report, read_report
from validators.contracts.errors import BadInput, Blocked, ModalgateError, NotFound


def ctal(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An alignment log, JSON lines.")],
    *,
    residual: Annotated[
        bool, typer.Option("--residual", help="Judge what is left after repair.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show where sync was lost: track, first tick, how far, until when, suspected cause."""
    answer(lambda: _judged(file, residual=residual), show, as_json=as_json)


def _judged(file: Path, *, residual: bool) -> Document:
    report = _read(file, residual=residual)
    document = document_of(report)
    if error := _error(report, file):
        error.attachment = document
        raise error
    return document


def _read(file: Path, *, residual: bool) -> Report:
    if not file.exists():
        raise NotFound(
            "there is no such alignment log", where=str(file),
            remedy="Give a file that a release wrote: alignment.jsonl in its evidence.",
        )  # fmt: skip
    try:
        with file.open("rb") as stream:
            return read_report(stream, residual=residual)
    except OSError as error:
        raise BadInput(
            "the alignment log cannot be read", where=str(file), remedy="Give a file."
        ) from error


def _error(report: Report, file: Path) -> ModalgateError | None:
    if report.bad_count:
        bad = report.bad_lines[0]
        return BadInput(
            f"{report.bad_count} lines are no events, first line {bad.number}: {bad.reason}",
            where=str(file), remedy="Compare them with: modalgate schema ctal",
        )  # fmt: skip
    if not report.events:
        return BadInput("the alignment log holds no event", where=str(file),
                        remedy="Give a file that a release wrote.")  # fmt: skip
    if report.loss_count:
        first = report.losses[0].loss
        return Blocked(
            f"sync was lost {_times(report.loss_count)}, first on the track {first.track} of "
            f"{first.input_id} at {first.from_ms:.0f} ms",
            where=str(file), remedy="Look at the suspected causes; shift or record again.",
        )  # fmt: skip
    return None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def document_of(report: Report) -> dict[str, Any]:
    """The report as the document that `--json` prints."""
    return {
        "in_sync": not report.loss_count,
        "events": report.events,
        "stages": dict(sorted(report.stages.items())),
        "tracks": {name: item.document() for name, item in sorted(report.tracks.items())},
        "loss_count": report.loss_count,
        "losses": [_loss(item) for item in report.losses],
        "bad_line_count": report.bad_count,
        "bad_lines": [{"line": item.number, "reason": item.reason} for item in report.bad_lines],
    }


def _loss(found: FoundLoss) -> dict[str, Any]:
    loss = found.loss
    return {
        "input_id": loss.input_id,
        "track": loss.track,
        "kind": loss.kind,
        "first_tick": loss.first_tick,
        "first_item": loss.first_item,
        "from_ms": loss.from_ms,
        "until_ms": loss.until_ms,
        "to_the_end": loss.at_end,
        "ticks": loss.ticks,
        "worst_ms": loss.worst_ms,
        "mean_ms": loss.mean_ms,
        "repaired": loss.repaired,
        "cause": {
            "code": found.code,
            "observed_in": found.observed_in,
            "evidence": dict(found.evidence),
        },
    }


def show(document: Document) -> None:
    """Tables for people: the losses first, then every track."""
    if document["losses"]:
        losses = Table(title="where sync was lost")
        for column in ("input", "track", "from", "until", "offset", "cause", "evidence", "left"):
            losses.add_column(column)
        for item in document["losses"]:
            losses.add_row(*_loss_row(item))
        console.print(losses)
    tracks = Table(title=f"tracks of {document['events']} events (negative: lags the reference)")
    for column in (
        "track",
        "ticks",
        "lost",
        "mean ms",
        "least ms",
        "most ms",
        "seen in",
        "outcomes",
    ):
        tracks.add_column(column)
    for name, item in document["tracks"].items():
        said = ", ".join(f"{outcome} {count}" for outcome, count in item["outcomes"].items())
        cells = ("ticks", "lost", "mean_ms", "least_ms", "most_ms")
        seen = ", ".join(item["observed_in"]) or "-"
        tracks.add_row(name, *(_cell(item[cell]) for cell in cells), seen, said)
    console.print(tracks)
    if document["loss_count"] > len(document["losses"]):
        console.print(f"and {document['loss_count'] - len(document['losses'])} more losses")
    for item in document["bad_lines"]:
        console.print(f"line {item['line']}: {item['reason']}")


def _loss_row(item: Document) -> tuple[str, ...]:
    cause = item["cause"]
    evidence = ", ".join(f"{name} {_cell(value)}" for name, value in cause["evidence"].items())
    until = "the end" if item["to_the_end"] else f"{item['until_ms']:.0f} ms"
    offset = "nothing there" if item["kind"] == "gap" else f"{item['mean_ms']:+.1f} ms"
    return (
        item["input_id"], item["track"], f"{item['from_ms']:.0f} ms (tick {item['first_tick']})",
        until, offset, f"{cause['code']} ({cause['observed_in']})", evidence,
        "repaired" if item["repaired"] else "not repaired",
    )  # fmt: skip


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)


def register(app: typer.Typer) -> None:
    app.command("ctal")(ctal)
