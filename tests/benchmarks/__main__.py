"""Run one benchmark, or all of them."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from rich.console import Console

from tests.benchmarks.result import Options, Result

NAMES = (
    "release", "reference", "backends", "profiles", "shape-storm", "precision", "compat", "epsilon",
    "adapters", "ingest", "drift-power", "drift-speed",
)  # fmt: skip
PEERS: tuple[str, ...] = ()
"""Environments that `make bench-peers` makes; none of the benchmarks so far has a peer."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("name", choices=[*NAMES, "all", "peers"])
    parser.add_argument("--json", type=Path, help="write the result here")
    parser.add_argument("--peers", choices=["default", "all"], default="default")
    parser.add_argument("--repeats", type=int, default=1, choices=range(1, 21))
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    if arguments.name == "peers":
        console.print("no benchmark needs a peer's environment yet")
        return
    options = Options(arguments.repeats, arguments.peers)
    for name in NAMES if arguments.name == "all" else (arguments.name,):
        result: Result = importlib.import_module(f"tests.benchmarks.{name.replace('-', '_')}").run(
            options
        )
        result.show(console)
        if arguments.json:
            target = arguments.json
            result.write(target if arguments.name != "all" else target.with_name(f"{name}.json"))


if __name__ == "__main__":
    main()
