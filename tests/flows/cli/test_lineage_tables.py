"""What people see of a lineage, whatever its things are called."""

from __future__ import annotations

from typing import Any

import pytest

from flows.cli.lineage import graph_rows
from flows.cli.lineage_tables import show_asked, show_graph
from tests.validators.lineage.test_graph import (
    ENGINE,
    NODES,
    ONNX,
    RUNS,
    SOURCE,
    VERSION,
    WHOLE,
    node,
    run,
)
from validators.contracts.digest import short
from validators.contracts.verdict import conclude
from validators.lineage.graph import JobRun, LineageGraph, NodeKind, find_faults, join


def document(graph: LineageGraph, **more: Any) -> dict[str, Any]:
    return {
        **graph_rows(graph),
        "faults": find_faults(graph),
        "sample": None,
        "used_by": [],
        **more,
    }


def test_a_tree_leads_from_what_was_made_to_what_came_in(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_graph(document(WHOLE))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("version")
    assert any(short(SOURCE.digest) in line for line in lines)
    assert all("as above" not in line for line in lines)


def test_what_was_shown_is_not_unfolded_again_and_cycles_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asset = node(NodeKind.ASSET, "map")
    runs = [*RUNS, run("learn", [ENGINE], asset), run("bake image", [ENGINE], ONNX)]
    show_graph(document(join("shop", [*NODES, asset], runs)))
    shown = capsys.readouterr().out
    assert "as above" in shown
    assert shown.count("checkpoint weights") == 1
    assert "cycle" in shown


def test_words_of_others_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    odd = node(NodeKind.SOURCE, "[/bold] [red]folder")
    gate = JobRun("shop", "gate quality", (odd.name,), (), conclude("quality", [], examined=1))
    graph = join("shop", [*NODES, odd], [*RUNS, gate])
    show_asked(document(graph, start=[odd.name, VERSION.name], used_by=document(graph)["nodes"]))
    shown = capsys.readouterr().out
    assert "[/bold] [red]folder" in shown
    assert "quality PASS" in shown
