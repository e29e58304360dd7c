from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.digest import digest_bytes
from validators.contracts.verdict import conclude
from validators.lineage.graph import (
    JobRun,
    LineageGraph,
    Node,
    NodeKind,
    NodeName,
    downstream,
    find_faults,
    join,
    makers,
    part,
    upstream,
)


def node(kind: NodeKind, text: str) -> Node:
    return Node(kind, digest_bytes(text.encode()), text)


def run(job: str, inputs: list[Node], *outputs: Node) -> JobRun:
    return JobRun("shop", job, tuple(n.name for n in inputs), tuple(n.name for n in outputs))


SOURCE, RAW, DATA = (
    node(NodeKind.SOURCE, "folder"), node(NodeKind.INGESTED, "raw"), node(NodeKind.DATASET, "clean")
)  # fmt: skip
CHECKPOINT, ONNX, ENGINE = (
    node(NodeKind.CHECKPOINT, "weights"), node(NodeKind.ONNX, "onnx"), node(NodeKind.ENGINE, "plan")
)  # fmt: skip
BUNDLE, VERSION = node(NodeKind.BUNDLE, "bundle"), node(NodeKind.VERSION, "version 1")
NODES = [SOURCE, RAW, DATA, CHECKPOINT, ONNX, ENGINE, BUNDLE, VERSION]
RUNS = [
    run("ingest", [SOURCE], RAW),
    run("deidentify", [RAW], DATA),
    run("export image", [CHECKPOINT], ONNX),
    run("build image", [ONNX], ENGINE),
    run("bundle", [DATA, ENGINE], BUNDLE),
    run("register", [BUNDLE], VERSION),
]
WHOLE = join("shop", NODES, RUNS)


def codes(graph: LineageGraph) -> list[tuple[str, str, bool]]:
    return [(fault.code, fault.where, fault.severe) for fault in find_faults(graph)]


def test_a_whole_lineage_has_no_fault() -> None:
    assert find_faults(WHOLE) == ()


def test_a_version_came_from_everything_and_a_source_went_into_what_was_made_of_it() -> None:
    assert upstream(WHOLE, [VERSION.name]) == {item.name for item in NODES}
    assert upstream(WHOLE, [ENGINE.name]) == {CHECKPOINT.name, ONNX.name, ENGINE.name}
    assert downstream(WHOLE, [DATA.name]) == {DATA.name, BUNDLE.name, VERSION.name}


def test_a_part_keeps_the_gates_that_judged_its_things() -> None:
    gate = JobRun("shop", "gate quality", (DATA.name,), (), conclude("quality", [], examined=1))
    parity = JobRun("shop", "gate parity", (ENGINE.name,), (), conclude("parity", [], examined=1))
    whole = join("shop", NODES, [*RUNS, gate, parity])
    found = part(whole, upstream(whole, [DATA.name]))
    assert [item.job for item in found.runs] == ["ingest", "deidentify", "gate quality"]


def test_the_same_run_told_twice_is_one_and_the_node_with_more_facts_stays() -> None:
    more = Node(ONNX.kind, ONNX.digest, "onnx", (("licence", "Apache-2.0"),))
    joined = join("shop", [*NODES, more], [*RUNS, *RUNS])
    assert joined.runs == WHOLE.runs
    assert more in joined.nodes
    assert len(joined.nodes) == len(NODES)


def test_the_same_bytes_as_a_source_and_as_a_model_are_two_things() -> None:
    source = Node(NodeKind.CHECKPOINT, ONNX.digest, "image")
    graph = join("shop", [source, ONNX], [run("export image", [source], ONNX)])
    assert find_faults(graph) == ()


def test_a_thing_that_nothing_made_is_named_with_what_to_do() -> None:
    graph = join("shop", NODES, [item for item in RUNS if item.job != "deidentify"])
    (fault,) = find_faults(graph)
    assert (fault.code, fault.where, fault.severe) == ("missing-parent", DATA.name, False)
    assert "release again" in fault.remedy


def test_a_step_over_a_thing_that_no_record_describes_is_severe() -> None:
    graph = join("shop", [item for item in NODES if item is not ENGINE], RUNS)
    assert codes(graph) == [("missing-node", ENGINE.name, True)] * 2


@pytest.mark.parametrize(
    ("made", "inputs", "severe"), [(VERSION, [ENGINE], True), (ONNX, [SOURCE], False)]
)
def test_two_origins_are_told_and_contradict_only_where_content_says_its_own(
    made: Node, inputs: list[Node], severe: bool
) -> None:
    graph = join("shop", NODES, [*RUNS, run("another", inputs, made)])
    assert codes(graph) == [("two-parents", made.name, severe)]
    assert len(makers(graph, made.name)) == 2


def test_a_thing_made_of_itself_is_a_cycle_and_every_walk_still_ends() -> None:
    graph = join("shop", NODES, [*RUNS, run("bake image", [ENGINE], ONNX)])
    assert ("cycle", min(ONNX.name, ENGINE.name), True) in codes(graph)
    assert upstream(graph, [VERSION.name]) == {item.name for item in NODES}


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30))
def test_no_graph_whatever_its_edges_makes_a_walk_or_a_check_hang(
    edges: list[tuple[int, int]],
) -> None:
    runs = [run(f"step {n}", [NODES[a]], NODES[b]) for n, (a, b) in enumerate(edges)]
    graph = join("shop", NODES, runs)
    find_faults(graph)
    for item in NODES:
        assert item.name in upstream(graph, [item.name]) & downstream(graph, [item.name])
        assert isinstance(part(graph, frozenset({NodeName("none"), item.name})), LineageGraph)


def test_a_run_s_digest_is_pinned() -> None:
    assert RUNS[0].digest == (
        "sha256:914149b916cff98ac133aa3f4197a0050929d1683c06a3c5bb2504f30c1c571f"
    )
