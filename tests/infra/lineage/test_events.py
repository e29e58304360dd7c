"""A release's graph becomes OpenLineage events: the same each time, whole, and nobody's data."""

from __future__ import annotations

import dataclasses
import json
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.serde import Serde

from infra.lineage import facets
from infra.lineage.events import ReleaseStory, run_id, tell_release, write_lines
from validators.contracts.digest import digest_bytes
from validators.contracts.verdict import Finding, Outcome, conclude
from validators.lineage.graph import JobRun, Node, NodeKind, join

SOURCE = Node(NodeKind.SOURCE, digest_bytes(b"folder"), "folder data")
RAW = Node(NodeKind.INGESTED, digest_bytes(b"raw"), "normalised")
DATA = Node(
    NodeKind.DATASET, digest_bytes(b"clean"), "de-identified",
    (("preprocessing.image", digest_bytes(b"steps")), ("samples", "40")),
)  # fmt: skip
ONNX = Node(NodeKind.ONNX, digest_bytes(b"onnx"), "image 1.0.0")
WARNED = conclude(
    "lineage",
    [Finding("lineage", "new-sensor", "a secret sensor", Outcome.WARN, "x", "y", "Look.")] * 3,
    examined=40,
    metrics={"samples": 40.0},
)
FAILED = conclude(
    "quality", [Finding("quality", "missing", "olga-7", Outcome.FAIL, 1, 0, "Mend.")], examined=40
)
RUNS = (
    JobRun("shop", "ingest", (SOURCE.name,), (RAW.name,)),
    JobRun("shop", "deidentify", (RAW.name,), (DATA.name,)),
    JobRun("shop", "gate lineage", (DATA.name,), (), WARNED),
)
GRAPH = join("shop", [SOURCE, RAW, DATA, ONNX], RUNS)
STORY = ReleaseStory(digest_bytes(b"bundle"), 1_800_000_000_000, GRAPH)
SCHEMA = json.loads((Path(facets.__file__).parent / "facets.schema.json").read_text())


def told(story: ReleaseStory = STORY) -> list[dict[str, Any]]:
    return [json.loads(line) for line in write_lines(tell_release(story)).splitlines()]


def names(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["job"]["name"], event["eventType"]) for event in events]


def test_each_step_starts_and_completes_within_its_release() -> None:
    assert names(told()) == [
        ("shop.release", "START"),
        ("shop.ingest", "START"), ("shop.ingest", "COMPLETE"),
        ("shop.deidentify", "START"), ("shop.deidentify", "COMPLETE"),
        ("shop.gate.lineage", "START"), ("shop.gate.lineage", "COMPLETE"),
        ("shop.release", "COMPLETE"),
    ]  # fmt: skip


def test_the_same_release_is_the_same_bytes_and_another_one_has_other_runs() -> None:
    assert write_lines(tell_release(STORY)) == write_lines(tell_release(STORY))
    other = dataclasses.replace(STORY, release=digest_bytes(b"another"))
    first, second = told()[0]["run"]["runId"], told(other)[0]["run"]["runId"]
    assert first != second
    assert told()[1]["run"]["runId"] == told(other)[1]["run"]["runId"]  # the same step


def test_a_run_id_is_a_uuid_made_of_the_step_s_digest() -> None:
    assert run_id(digest_bytes(b"x")) == "647a04f9-fb0e-5f2e-816e-0874ff27abc4"
    assert uuid.UUID(run_id(digest_bytes(b"x"))).version == 5


def test_every_thing_is_named_by_kind_and_digest_and_described() -> None:
    ingest = told()[2]
    (source,), (raw,) = ingest["inputs"], ingest["outputs"]
    assert (source["namespace"], source["name"]) == ("modalgate", SOURCE.name)
    assert source["facets"]["dataSource"]["name"] == "folder data"
    assert raw["facets"]["version"]["datasetVersion"] == RAW.digest
    assert raw["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "CREATE"
    (data,) = told()[4]["outputs"]
    assert [field["name"] for field in data["facets"]["schema"]["fields"]] == ["image"]


def test_steps_name_their_release_as_parent() -> None:
    whole, *steps, _ = told()
    assert {event["run"]["facets"]["parent"]["run"]["runId"] for event in steps} == {
        whole["run"]["runId"]
    }


def test_a_gate_tells_what_it_asserted_and_how_many_but_not_of_whom() -> None:
    gate = told()[6]
    (data,) = gate["inputs"]
    (said,) = data["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert (said["assertion"], said["success"], said["severity"]) == ("new-sensor", False, "warn")
    assert said["actual"] == "3 findings"
    assert data["inputFacets"]["dataQualityMetrics"]["rowCount"] == 40
    assert gate["run"]["facets"]["modalgate_verdict"]["outcome"] == "WARN"
    assert "secret" not in json.dumps(gate)


def test_a_gate_that_stopped_fails_its_run_and_its_release() -> None:
    gate = JobRun("shop", "gate quality", (DATA.name,), (), FAILED)
    graph = join("shop", GRAPH.nodes, [*RUNS, gate])
    events = told(dataclasses.replace(STORY, graph=graph, failure="the quality gate stopped it"))
    assert names(events)[-2:] == [("shop.gate.quality", "FAIL"), ("shop.release", "FAIL")]
    messages = [event["run"]["facets"]["errorMessage"]["message"] for event in events[-2:]]
    assert messages == ["the quality gate said FAIL", "the quality gate stopped it"]
    assert "olga" not in json.dumps(events)


def every_facet(event: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = dict(event["run"]["facets"]) | event["job"]["facets"]
    for thing in (*event["inputs"], *event["outputs"]):
        found |= thing["facets"] | thing.get("inputFacets", {}) | thing.get("outputFacets", {})
    return found


def test_each_event_has_what_the_standard_asks_for() -> None:
    for event in told():
        assert {"eventTime", "producer", "schemaURL", "run", "job"} <= set(event)
        assert event["schemaURL"].endswith("OpenLineage.json#/$defs/RunEvent")
        assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
        for facet in every_facet(event).values():
            assert facet["_producer"] == facets.PRODUCER
            assert facet["_schemaURL"]


def test_our_own_facets_are_as_their_published_schema_says() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    seen = set()
    for event in told():
        for name, facet in every_facet(event).items():
            if not name.startswith("modalgate_"):
                assert facet["_schemaURL"].startswith("https://openlineage.io/spec/")
                continue
            place, _, pointer = facet["_schemaURL"].partition("#")
            assert place == SCHEMA["$id"]
            check = {**SCHEMA, "$ref": f"#{pointer}"}
            jsonschema.Draft202012Validator(check).validate(facet)
            seen.add(name)
    assert seen == {"modalgate_node", "modalgate_step", "modalgate_verdict"}


def test_the_client_s_own_serialiser_writes_nothing_that_it_could_not_write() -> None:
    assert "non-serializable" not in "".join(Serde.to_json(event) for event in tell_release(STORY))


@pytest.mark.parametrize("kind", NodeKind)
def test_every_kind_of_thing_can_be_told(kind: NodeKind) -> None:
    node = Node(kind, digest_bytes(b"x"), "a thing")
    graph = join("shop", [node], [JobRun("shop", "make", (), (node.name,))])
    (made,) = told(dataclasses.replace(STORY, graph=graph))[2]["outputs"]
    assert made["facets"]["modalgate_node"]["kind"] == kind.value
