"""What `modalgate engines` prints for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from flows.cli.output import Document, console
from flows.cli.tables import COLOURS
from validators.contracts.digest import plain, short

_USES = {"live": "green", "canary": "green", "rollback": "yellow", "none": "dim"}


def show_stored(document: Document) -> None:
    """A row an engine."""
    table = Table(title="Engines", title_justify="left")
    for column in (
        "key", "encoder", "backend", "precision", "target", "state", "size", "profiles", "used by",
    ):  # fmt: skip
        table.add_column(column)
    for row in document["engines"]:
        table.add_row(
            short(row["key"]), row["encoder"] or "?", row["backend"] or "?",
            str(plain(row["precision"]) or "?"), row["target"] or "?",
            f"[red]{row['problem']}[/]" if row["encoder"] is None else str(plain(row["state"])),
            _size(row["size_bytes"]), str(row["profiles"] or "?"), _use(row),
        )  # fmt: skip
    console.print(table)


def show_engine(document: Document) -> None:
    """One engine in full."""
    if "engine" not in document:
        return
    row, manifest, parity = document["engine"], document["manifest"], document["parity"]
    console.print(f"key         {row['key']}")
    if manifest is None:
        console.print(f"[red]{row['problem']}[/]")
        return
    spec = manifest.spec
    for name, value in (
        ("encoder", spec.encoder), ("backend", f"{spec.backend} {spec.backend_version}"),
        ("precision", spec.precision.value), ("target", spec.target.name),
        ("state", plain(row["state"])), ("verified on", row["verified_on"] or "no host"),
        ("onnx", spec.onnx), ("engine", f"{manifest.engine}, {_size(manifest.size_bytes)}"),
        ("used by", _use(row)),
    ):  # fmt: skip
        console.print(f"{name:<11} {value}")
    for flag, value in spec.flags:
        console.print(f"flag        {flag} = {value}")
    for number, profile in enumerate(spec.profiles):
        for item in profile.ranges:
            sizes = f"{list(item.minimum)} {list(item.optimum)} {list(item.maximum)}"
            console.print(f"profile {number:<3} {item.tensor} {sizes}", markup=False)
    for phase in manifest.phases:
        console.print(f"phase       {phase.name}: {phase.duration_ms:.0f} ms")
    if parity is not None:
        console.print(f"parity      with {parity.reference}, {len(parity.deviations)} comparisons")
        for item in sorted(parity.deviations, key=lambda item: -item.max_rel)[:3]:
            console.print(
                f"            {item.case}, {item.output}: largest relative difference "
                f"{item.max_rel:.2e}, least cosine {item.cosine_min:.6f}"
            )


def show_inspected(document: Document) -> None:
    """A row an engine that was tried, with what was found."""
    table = Table(title="Engines", title_justify="left")
    for column in ("key", "outcome", "found"):
        table.add_column(column)
    for row in document.get("engines", ()):
        outcome = str(plain(row["outcome"]))
        found = "\n".join(f"{item.code}: {item.measured}" for item in row["findings"])
        table.add_row(short(row["key"]), f"[{COLOURS[outcome]}]{outcome}[/]", found)
    console.print(table)


def show_pruned(document: Document) -> None:
    """What went, and what waits."""
    if "removed" not in document:
        return
    went = "would go" if document["dry_run"] else "removed"
    for name in document["removed"]:
        console.print(f"{went:<12}{name}")
    for name in document["waiting"]:
        console.print(f"[dim]in grace    {name}[/]")
    console.print(
        f"{len(document['removed'])} references and {document['objects_removed']} objects {went}, "
        f"{len(document['waiting'])} references wait for the end of their grace"
    )
    if document["objects_left_to_others"]:
        console.print("objects stay: other machines may write to this store (--alone removes them)")


def show_builds(document: Document) -> None:
    """A row a request."""
    if "retried" in document:
        console.print(f"{document['retried']} failed requests wait again")
    for row in document.get("builds", ()):
        sizes = ", ".join(f"{name} {size}" for name, size in row["sizes"].items())
        live = ", serves now" if row["live"] else ""
        note = f": {row['message']}" if row["message"] else live
        console.print(f"{row['state']:<8} {row['service']} {row['encoder']} at {sizes}{note}")
    if not document.get("builds"):
        console.print("no build request waits")


def _use(row: Mapping[str, Any]) -> str:
    use = str(plain(row["use"]))
    colour = _USES.get(use)
    text = f"[{colour}]{use}[/]" if colour else use
    return f"{text} ({', '.join(row['used_by'])})" if row["used_by"] else text


def _size(size_bytes: int | None) -> str:
    return "?" if size_bytes is None else f"{size_bytes / 2**20:.1f} MiB"
