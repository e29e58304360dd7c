"""What a released service came from: shown, exported, and said where it does not hold any more."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from flows.release.values import ReleaseRecord
from tests.infra.lineage.test_send import serving
from tests.scenarios.small import SERVICE, Project
from tests.scenarios.stage import Stage
from tests.scenarios.warm import Ran
from validators.contracts.digest import Digest, canonical_json, hex_of
from validators.contracts.documents import load

pytestmark = pytest.mark.slow


def lineage(stage: Stage, *words: str, **environment: str) -> Ran:
    return stage.cli("lineage", *words, "--json", **environment)


def kinds(document: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in document["nodes"]:
        found[row["kind"]] = found.get(row["kind"], 0) + 1
    return found


def record(stage: Stage) -> tuple[str, ReleaseRecord]:
    (name,) = stage.store.references("releases/")
    digest = stage.store.reference(name)
    assert digest is not None
    return name, load(ReleaseRecord, stage.store.get(digest))


def object_file(stage: Stage, digest: Digest) -> Path:
    (path,) = (stage.home / "objects").rglob(f"*{hex_of(digest)[4:]}*")
    return path


def test_everything_of_a_release_has_an_origin_down_to_the_folder_and_the_checkpoints(
    released: Stage,
) -> None:
    ran = lineage(released, "graph", SERVICE)
    document = ran.document
    assert (ran.code, document["status"]) == (0, "done"), ran.stdout
    found = kinds(document)
    assert {name: found[name] for name in found if name != "asset"} == {
        "source": 1, "ingested": 1, "dataset": 1, "certificate": 1, "checkpoint": 2, "onnx": 2,
        "engine": 4, "window": 1, "bundle": 1, "version": 1, "deployment": 1,
    }  # fmt: skip
    assert [fault["code"] for fault in document["faults"]] == []
    gates = {row["job"]: row["outcome"] for row in document["runs"] if row["outcome"]}
    assert gates["gate privacy"] == "PASS"
    assert all(row["digest"].startswith("sha256:") for row in document["nodes"])


def test_a_service_a_digest_and_a_sample_are_shown_with_what_they_came_from(
    released: Stage,
) -> None:
    whole = lineage(released, "show", SERVICE).document
    assert whole["start"] == [row["name"] for row in whole["nodes"] if row["kind"] == "deployment"]
    assert {"source", "checkpoint"} <= set(kinds(whole))

    engine = next(row for row in whole["nodes"] if row["kind"] == "engine")
    by_digits = lineage(released, "show", engine["digest"][7:19]).document
    assert by_digits["start"] == [engine["name"]]
    assert set(kinds(by_digits)) == {"checkpoint", "onnx", "engine"}
    assert "version" in {row["kind"] for row in by_digits["used_by"]}

    sample = lineage(released, "show", "red-circle").document["sample"]
    assert (sample["sensor"], sample["channels"], sample["lighting"], sample["source"]) == (
        "camera", "RGB", "day", "studio",
    )  # fmt: skip
    dataset = next(row for row in whole["nodes"] if row["kind"] == "dataset")
    assert sample["dataset"] == dataset["digest"]
    assert {item["modality"]: item["preprocessing"] for item in sample["media"]} == {
        name: dataset["facets"][f"preprocessing.{name}"] for name in ("image", "text")
    }


def test_people_see_trees(released: Stage) -> None:
    for words in (("graph", SERVICE), ("show", SERVICE), ("show", "red-circle")):
        ran = released.cli("lineage", *words)
        assert ran.code == 0, ran.stdout + ran.stderr
        assert "checkpoint" in ran.stdout or "source" in ran.stdout


@pytest.mark.parametrize("word", ["nobody", "deadbeef", "-", "../x", "x" * 5000])
def test_a_word_that_names_nothing_is_refused_with_what_to_name(released: Stage, word: str) -> None:
    ran = released.cli("lineage", "show", "--json", "--", word)
    assert ran.code == 2
    assert "digits of a digest" in ran.document["error"]["remedy"]


def test_the_export_is_what_the_release_wrote_and_may_be_sent_again(released: Stage) -> None:
    lines = released.cli("lineage", "export", SERVICE, "--format", "openlineage").stdout
    events = [json.loads(line) for line in lines.splitlines()]
    jobs = [event["job"]["name"] for event in events]
    assert {f"{SERVICE}.ingest", f"{SERVICE}.register", f"{SERVICE}.deploy"} <= set(jobs)
    assert events == lineage(released, "export", SERVICE).document["events"]
    written = (released.home / "evidence" / SERVICE / "openlineage.jsonl").read_text()
    assert [json.loads(line) for line in written.splitlines()] == events

    with serving("well") as server:
        ran = lineage(released, "export", SERVICE, "--send", OPENLINEAGE_URL=server.url)
    assert ran.code == 0, ran.stdout
    assert [body for _, _, body in server.asked] == events
    assert lineage(released, "export", SERVICE, "--send").code == 2
    assert lineage(released, "export", SERVICE, "--format", "dot").code == 2


@pytest.mark.heavy
@pytest.mark.parametrize("manner", ["well", "broken", "slow", "dead"])
def test_a_release_tells_a_server_and_is_done_whatever_that_server_does(
    released: Stage, project: Project, manner: str
) -> None:
    if manner == "dead":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}"
        assert released.release(project, OPENLINEAGE_URL=url).document["status"] == "done"
        return
    with serving(manner) as server:
        ran = released.release(project, OPENLINEAGE_URL=server.url)
        assert ran.document["status"] == "done", ran.stdout
        assert ran.document["unchanged"] is True
        assert len(server.asked) > 20 if manner == "well" else len(server.asked) == 1


def test_a_stopped_release_leaves_a_failed_run(fresh: Stage, project: Project) -> None:
    project.collect(lambda rows: [row["tags"].pop("sensor") for row in rows])
    assert fresh.release(project).code == 3
    written = (fresh.home / "evidence" / SERVICE / "openlineage.jsonl").read_text()
    events = [json.loads(line) for line in written.splitlines()]
    failed = [event["job"]["name"] for event in events if event["eventType"] == "FAIL"]
    assert failed == [f"{SERVICE}.gate.lineage", f"{SERVICE}.release"]
    assert f"{SERVICE}.deidentify" in {event["job"]["name"] for event in events}


def test_a_damaged_record_is_named_and_the_rest_is_still_shown(released: Stage) -> None:
    _, found = record(released)
    object_file(released, found.lineage).write_bytes(b"{}")
    ran = lineage(released, "graph", SERVICE)
    assert (ran.code, ran.document["status"]) == (1, "failed")
    faults = {fault["code"] for fault in ran.document["faults"]}
    assert "damaged-record" in faults
    assert "missing-parent" in faults  # the folder and the checkpoints were named there
    assert ran.document["error"]["remedy"]
    assert kinds(ran.document)["engine"] == 4


def test_a_record_of_another_bundle_is_damage(released: Stage) -> None:
    name, found = record(released)
    store, before = released.store, released.store.reference(name)
    changed = canonical_json(found).replace(found.bundle.encode(), found.certificate.encode())
    store.set_reference(name, store.put(changed), expected=before)
    ran = lineage(released, "show", SERVICE)
    assert ran.code == 1
    assert "another bundle" in ran.document["error"]["what"]


@pytest.mark.heavy
def test_a_release_of_an_earlier_version_is_shown_with_what_it_did_not_write_down(
    released: Stage, project: Project
) -> None:
    name, found = record(released)
    store, before = released.store, released.store.reference(name)
    first_form = {
        "samples": 40, "modalities": ["image", "text"], "channels": ["RGB"],
        "sensors": ["camera"], "lighting": ["day"], "sources": ["studio"], "brightness": None,
    }  # fmt: skip
    old = store.put(canonical_json(first_form))
    changed = canonical_json(found).replace(found.lineage.encode(), old.encode())
    store.set_reference(name, store.put(changed), expected=before)
    ran = lineage(released, "show", SERVICE)
    assert (ran.code, {fault["code"] for fault in ran.document["faults"]}) == (
        0,
        {"missing-parent"},
    )

    project.edit(lambda document: document["slo"].update(p99_ms=1900))
    second = released.release(project).document
    assert second["status"] == "done", second
    (verdict,) = [item for item in second["verdicts"] if item["gate"] == "lineage"]
    assert [item["code"] for item in verdict["findings"]] == ["reference-without-counts"]


@pytest.mark.heavy
def test_two_versions_share_what_did_not_change(released: Stage, project: Project) -> None:
    project.edit(lambda document: document["slo"].update(p99_ms=1900))
    assert released.release(project).code == 0
    document = lineage(released, "graph", SERVICE).document
    found = kinds(document)
    assert (found["version"], found["bundle"], found["dataset"]) == (2, 2, 1)
    assert found["engine"] == 4
    assert not [fault for fault in document["faults"] if fault["severe"]]
