"""What `modalgate drift` prints for people."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rich.markup import escape
from rich.table import Table

from flows.cli.output import Document, console
from flows.cli.tables import COLOURS
from validators.contracts.digest import plain, short

_SHOWN = 20


def show_look(document: Document) -> None:
    """A judged window: what it was, each finding, and the figures of each feature."""
    look: Mapping[str, Any] = dict(document)
    if "verdicts" not in look:
        show_findings(look.get("findings", ()))
        return
    outcome = str(plain(look["outcome"]))
    console.print(
        f"window      {short(look['window'])}, {look['rows']} requests of {look['seen']} drawn, "
        f"{_time(look['from_ms'])} to {_time(look['until_ms'])}"
    )
    console.print(f"reference   {short(look['reference'])} of bundle {short(look['champion'])}")
    console.print(f"outcome     [{COLOURS[outcome]}]{outcome}[/]")
    verdicts = list(plain(look["verdicts"]))
    unused = list(plain(list(look.get("findings", ()))))
    show_findings(unused + [finding for verdict in verdicts for finding in verdict["findings"]])
    said = {finding["remedy"] for verdict in verdicts for finding in verdict["findings"]}
    for item in plain(list(look.get("explanations", ()))):
        for sentence in [text for text in item["sentences"] if text not in said]:
            console.print(f"  {escape(sentence)}", soft_wrap=True)
    _show_figures(verdicts[0])


def show_findings(findings: Any) -> None:
    """Findings, the gravest first, each with what to do."""
    rows = sorted(plain(list(findings)), key=lambda item: _rank(item["outcome"]))
    for item in rows[:_SHOWN]:
        outcome = item["outcome"]
        name = item.get("finding") or f"{item['gate']}/{item['code']}/{item['subject']}"
        measured, limit = escape(_figure(item["measured"])), escape(_figure(item["limit"]))
        console.print(
            f"[{COLOURS[outcome]}]{outcome:<12}[/]{escape(name)}: {measured}, limit {limit}"
        )
        console.print(f"            {escape(item['remedy'])}", style="dim")
    if len(rows) > _SHOWN:
        console.print(f"            and {len(rows) - _SHOWN} more")


def show_looks(document: Document) -> None:
    """What came of each service's look."""
    for part in document.get("services", ()):
        name = part["service"]
        if "error" in part:
            console.print(f"{name}: [red]{escape(part['error']['what'])}[/]")
            continue
        if "skipped" in part:
            console.print(f"{name}: {part['skipped']}")
            continue
        outcome = part["outcome"]
        alarm = ", [red]alarm[/]" if part["alarm"] else ""
        console.print(f"{name}: [{COLOURS[outcome]}]{outcome}[/]{alarm} {escape(part['message'])}")
        for window in part["windows"]:
            name = short(window["window"])
            console.print(f"  window {name}: {window['outcome']}, {window['rows']} requests")
        show_findings(part["findings"])
        for sink in part["sinks"]:
            if sink["sent"] or sink["waiting"] or sink["given_up"]:
                console.print(
                    f"  {sink['sink']}: {sink['sent']} sent, {sink['waiting']} wait, "
                    f"{sink['given_up']} given up {escape(sink['problem'])}"
                )


def show_explained(document: Document) -> None:
    """The state of the watch, where it is there, then the window."""
    if "history" in document:
        alarm = (
            f"[red]alarm since {_time(document['alarm_since_ms'])}[/]"
            if document["alarm"]
            else "no alarm"
        )
        history = " ".join(document["history"]) or "none yet"
        console.print(f"{document['service']}: {alarm}; decided windows: {history}")
        if document["message"]:
            console.print(f"            {escape(document['message'])}")
        for item in plain(document["judged"]):
            console.print(f"  {short(item['window'])}  {_time(item['at_ms'])}  {item['outcome']}")
    if "look" in document:
        show_look(plain(document["look"]))


def show_schedule(document: Document) -> None:
    """What was set up at the orchestrator, or taken away."""
    for key, value in document.items():
        if key != "status":
            console.print(f"{key:<12}{escape(str(value))}")


def _show_figures(verdict: Mapping[str, Any]) -> None:
    metrics = dict(verdict["metrics"])
    names = [key.removeprefix("effect.") for key in metrics if key.startswith("effect.")]
    if not names:
        return
    names.sort(key=lambda name: -metrics[f"effect.{name}"])
    table = Table("feature", "effect", "p")
    for name in names[:_SHOWN]:
        p_value = metrics.get(f"p.{name}")
        table.add_row(
            escape(name), f"{metrics[f'effect.{name}']:.3f}",
            "" if p_value is None else f"{p_value:.2g}",
        )  # fmt: skip
    console.print(table)


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _time(at_ms: int | None) -> str:
    return datetime.fromtimestamp((at_ms or 0) / 1e3, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _rank(outcome: str) -> int:
    return ("FAIL", "ERROR", "INCONCLUSIVE", "WARN", "PASS").index(outcome)
