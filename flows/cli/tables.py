"""The tables that verbs close with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from validators.contracts.deployment import DeploymentStatus
from validators.contracts.digest import plain, short

COLOURS = {
    "PASS": "green",
    "WARN": "yellow",
    "INCONCLUSIVE": "magenta",
    "ERROR": "red",
    "FAIL": "red",
}
_SHOWN_FINDINGS = 3


def show_gates(console: Console, verdicts: Iterable[Mapping[str, Any]]) -> None:
    """A row a gate: its outcome, and what it noticed first."""
    table = Table(title="Gates", title_justify="left")
    for column in ("gate", "outcome", "findings"):
        table.add_column(column)
    for verdict in verdicts:
        outcome = str(plain(verdict["outcome"]))
        table.add_row(
            verdict["gate"],
            f"[{COLOURS[outcome]}]{outcome}[/]",
            _findings(list(plain(verdict["findings"]))),
        )
    console.print(table)


def show_engines(console: Console, engines: Iterable[Mapping[str, Any]]) -> None:
    """A row an engine."""
    table = Table(title="Engines", title_justify="left")
    for column in ("encoder", "backend", "target", "precision", "state", "made", "key"):
        table.add_column(column)
    for engine in engines:
        table.add_row(
            engine["encoder"],
            engine["backend"],
            engine["target"],
            str(plain(engine["precision"])),
            str(plain(engine["state"])),
            "found" if engine["cached"] else "built",
            short(engine["key"]),
        )
    console.print(table)


def show_deployment(console: Console, status: DeploymentStatus | None) -> None:
    """What serves, and where."""
    if status is None:
        console.print("deployment  none")
        return
    canary = f", canary {status.canary} at {status.canary_percent} %" if status.canary else ""
    console.print(f"deployment  {status.phase.value}: {status.stable or 'nothing'}{canary}")
    if status.rest_url:
        console.print(
            f"REST        {status.rest_url}/v1/answer   metrics {status.rest_url}/metrics"
        )
    if status.grpc_address:
        console.print(f"gRPC        {status.grpc_address}")
    if status.message:
        console.print(f"note        {status.message}")


def _findings(findings: list[Mapping[str, Any]]) -> str:
    worst = sorted(findings, key=lambda item: -list(COLOURS).index(item["outcome"]))
    lines = [escape(f"{item['code']} ({item['subject']})") for item in worst[:_SHOWN_FINDINGS]]
    more = len(findings) - len(lines)
    return "\n".join(lines + ([f"and {more} more"] if more > 0 else []))
