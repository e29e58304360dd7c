"""The one shape of result: rows for people, ratios for machines."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Options:
    """How to run: `repeats` of each side, and which peers to look for."""

    repeats: int = 1
    peers: str = "default"


@dataclass(frozen=True, slots=True)
class Machine:
    cores: int
    load_before: float

    @staticmethod
    def now() -> Machine:
        return Machine(len(os.sched_getaffinity(0)), round(os.getloadavg()[0], 2))


@dataclass(frozen=True, slots=True)
class Result:
    """`ratios` are medians over repeats; None, with a reason in `notes`, where not measurable."""

    name: str
    machine: Machine
    rows: tuple[Mapping[str, Any], ...]
    ratios: Mapping[str, float | None]
    notes: tuple[str, ...] = field(default_factory=tuple)

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "machine": {"cores": self.machine.cores, "load_before": self.machine.load_before},
            "rows": [dict(row) for row in self.rows],
            "ratios": dict(self.ratios),
            "notes": list(self.notes),
        }

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(self.document(), indent=2) + "\n")

    def show(self, console: Console) -> None:
        table = Table(
            title=f"{self.name} ({self.machine.cores} cores, load {self.machine.load_before})"
        )
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        for column in columns:
            table.add_column(column)
        for row in self.rows:
            table.add_row(*(str(row.get(column, "")) for column in columns))
        console.print(table)
        for name, value in self.ratios.items():
            console.print(f"  {name} = {value if value is None else round(value, 4)}")
        for note in self.notes:
            console.print(f"  note: {note}")


def spread(values: Sequence[float]) -> dict[str, float]:
    """Minimum, median and maximum, rounded for a table."""
    return {
        "min": round(min(values), 3),
        "median": round(statistics.median(values), 3),
        "max": round(max(values), 3),
    }
