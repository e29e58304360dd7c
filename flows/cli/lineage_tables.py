"""What `modalgate lineage` prints for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from rich.markup import escape
from rich.tree import Tree

from flows.cli.output import Document, console, notices
from flows.cli.tables import COLOURS
from validators.contracts.digest import plain, short

MAX_DEPTH = 64
_HIDDEN = (
    "backend", "contract", "document", "format", "lineage", "manifest", "registered_ms",
    "size_bytes", "target",
)  # fmt: skip


def show_asked(document: Document) -> None:
    """The things that were asked about, each as a tree of what it came from."""
    if "start" not in document:
        return
    _show_sample(document["sample"])
    trees = _Trees(document)
    for name in document["start"]:
        console.print(trees.tree(name))
    _show_gates(document["runs"])
    if document["used_by"]:
        console.print("[bold]Used by[/]")
        for row in document["used_by"]:
            console.print(f"  {_line(row)}")
    _show_faults(document["faults"])


def show_graph(document: Document) -> None:
    """Everything that nothing else was made of, each as a tree of what it came from."""
    if "nodes" not in document:
        return
    trees = _Trees(document)
    used = {name for run in document["runs"] if run["outputs"] for name in run["inputs"]}
    ends = [row["name"] for row in document["nodes"] if row["name"] not in used]
    names = ends[::-1] or [row["name"] for row in document["nodes"]]  # all in circles
    for name in names:
        console.print(trees.tree(name))
    _show_gates(document["runs"])
    _show_faults(document["faults"])


def show_exported(document: Document) -> None:
    """The events as they are sent: one JSON object a line, and nothing else."""
    for event in document.get("events", ()):
        sys.stdout.write(json.dumps(event, sort_keys=True, ensure_ascii=False) + "\n")
    for sent in document.get("sent") or ():
        if sent is not None:
            notices.print(f"sent {sent.events} events")
    _show_faults(document.get("faults", ()), to=notices)


class _Trees:
    """Trees of origins. What was shown above is named again, and not unfolded."""

    def __init__(self, document: Document) -> None:
        self._rows = {row["name"]: row for row in document["nodes"]}
        self._makers: dict[str, list[Mapping[str, Any]]] = {}
        for run in document["runs"]:
            for name in run["outputs"]:
                self._makers.setdefault(name, []).append(run)
        self._shown: set[str] = set()

    def tree(self, name: str) -> Tree:
        root = Tree(self._label(name), guide_style="dim")
        self._grow(root, name, 0)
        return root

    def _grow(self, tree: Tree, name: str, depth: int) -> None:
        if name in self._shown:
            return
        self._shown.add(name)
        for run in self._makers.get(name, []):
            said = f"[dim]by {escape(run['job'])} {short(run['digest'])}"
            if run["digest"] in self._shown or depth >= MAX_DEPTH:
                tree.add(f"{said}, as above[/]")
                continue
            self._shown.add(run["digest"])
            step = tree.add(f"{said}[/]")
            for source in run["inputs"]:
                self._grow(step.add(self._label(source)), source, depth + 1)

    def _label(self, name: str) -> str:
        row = self._rows.get(name)
        if row is None:
            return f"[red]{escape(name)} (no record)[/]"
        if name not in self._shown:
            return _line(row)
        return _line({**row, "facets": {}}) + (
            " [dim]as above[/]" if self._makers.get(name) else ""
        )


def _line(row: Mapping[str, Any]) -> str:
    facts = ", ".join(
        f"{name} {_short(value)}"
        for name, value in row["facets"].items()
        if value and name not in _HIDDEN
    )
    more = f" [dim]{escape(facts)}[/]" if facts else ""
    kind = str(plain(row["kind"]))
    return f"[bold]{kind}[/] {escape(row['label'])} [cyan]{short(row['digest'])}[/]{more}"


def _short(value: str) -> str:
    return short(value) if value.startswith("sha256:") else value


def _show_sample(sample: Any) -> None:
    if sample is None:
        return
    console.print(f"[bold]sample[/] {escape(sample.sample)}")
    for name in ("sensor", "channels", "lighting", "source"):
        console.print(f"  {name:<10} {escape(getattr(sample, name)) or 'missing'}")
    for name, value in sample.tags:
        console.print(f"  {escape(name):<10} {escape(value)}")
    for media in sample.media:
        prepared = short(media.preprocessing) if media.preprocessing else "not recorded"
        console.print(
            f"  {media.modality:<10} {short(media.digest)} {media.media_type}, prepared by "
            f"{prepared}"
        )
    console.print(f"  {'data set':<10} {short(sample.dataset)}")


def _show_gates(runs: list[Mapping[str, Any]]) -> None:
    said = dict.fromkeys(
        (run["job"].removeprefix("gate "), str(plain(run["outcome"])))
        for run in runs
        if run["outcome"] is not None
    )
    if said:
        words = ", ".join(f"{gate} [{COLOURS[word]}]{word}[/]" for gate, word in said)
        console.print(f"[bold]Gates[/] {words}")


def _show_faults(faults: Any, to: Any = console) -> None:
    for fault in faults:
        colour = "red" if fault.severe else "yellow"
        to.print(f"[{colour}]{fault.code}[/] {escape(fault.what)}", soft_wrap=True)
        to.print(f"  [green]do[/] {escape(fault.remedy)}", soft_wrap=True)
