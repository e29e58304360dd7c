"""The verbs, as processes: what they print, on which stream, and how they end."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import httpx
import pytest

from flows.cli.main import VERBS
from tests.scenarios.small import SERVICE, Project
from tests.scenarios.stage import Stage, release_arguments

pytestmark = pytest.mark.slow

NESTED = [("review", verb) for verb in ("list", "show", "approve", "reject", "audit")]
CHATTER = """
import os, sys
def build(folder):
    print("printed by a factory")
    os.write(1, b"written by a library")
    raise SystemError("the factory gave up")
"""


@pytest.mark.parametrize("words", [(), *((verb,) for verb in VERBS), *NESTED], ids=" ".join)
def test_every_verb_explains_itself(fresh: Stage, words: tuple[str, ...]) -> None:
    ran = fresh.cli(*words, "--help")
    assert ran.code == 0
    assert "Usage:" in ran.stdout
    assert "--help" in ran.stdout
    if words:
        assert len(ran.stdout.split("Options")[0].splitlines()) > 2  # a sentence beside the usage
    else:
        assert all(verb in ran.stdout for verb in VERBS)


def test_doctor_tries_each_backend_and_dependency(fresh: Stage) -> None:
    ran = fresh.cli("doctor", "--json")
    document = ran.document
    assert (ran.code, document["status"]) == (0, "done"), document.get("error")
    backends = document["backends"]
    assert set(backends) >= {"openvino", "onnxruntime", "tensorrt_rtx", "tensorrt"}
    assert backends["openvino"]["available"] is backends["onnxruntime"]["available"] is True
    assert all(backend["reason"] for backend in backends.values())
    dependencies = document["dependencies"]
    assert set(dependencies) >= {"state", "store", "keys", "ledger", "registry", "orchestrator"}
    assert all(health["healthy"] and health["reason"] for health in dependencies.values())


def test_doctor_names_what_is_ill(fresh: Stage) -> None:
    ran = fresh.cli("doctor", "--json", MODALGATE_STORE="s3://nowhere/here",
                    MODALGATE_S3_ENDPOINT="http://127.0.0.1:9")  # fmt: skip
    document = ran.document
    assert (ran.code, document["status"]) == (1, "failed")
    assert "store" in document["error"]["where"]
    assert document["dependencies"]["store"]["healthy"] is False
    assert document["dependencies"]["keys"]["healthy"] is True
    assert document["backends"]


def test_what_factories_print_does_not_touch_the_document(
    fresh: Stage, project: Project, tmp_path: Path, prefect_url: str
) -> None:
    (tmp_path / "chattering.py").write_text(CHATTER)
    project.edit(lambda document: document.update(data={"factory": "chattering:build"}))
    ran = fresh.command(
        *release_arguments(project), "--json",
        PYTHONPATH=str(tmp_path), PYTHONWARNINGS="always", PREFECT_API_URL=prefect_url,
    )  # fmt: skip
    assert (ran.code, ran.document["status"]) == (2, "bad-input")
    assert ran.document["error"]["what"] == "the data factory raised SystemError"
    assert "chattering.py:6" in ran.document["error"]["where"]
    assert "printed by a factory" in ran.stderr
    assert "written by a library" in ran.stderr


def test_for_people_there_are_tables_and_progress_on_the_other_stream(
    released: Stage, project: Project
) -> None:
    ran = released.cli(*release_arguments(project))
    assert ran.code == 0
    for word in ("Gates", "Engines", "rehearsal", "bundle", "version", "deployment", "evidence"):
        assert word in ran.stdout
    assert "nothing changed" in ran.stdout
    assert "rehearsal" in ran.stderr
    status = released.cli("status", SERVICE)
    assert "serving" in status.stdout
    audit = released.cli("review", "audit")
    assert "the chain holds" in audit.stdout


def test_a_ledger_that_was_changed_is_refused(released: Stage) -> None:
    path = released.home / "registry" / "ledger.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"ana"', b'"eve"', 1))
    ran = released.cli("review", "audit", "--json")
    assert (ran.code, ran.document["status"]) == (1, "failed")


def test_serve_answers_in_the_foreground_until_it_is_told_to_end(released: Stage) -> None:
    run = released.start("serve", SERVICE)
    state = released.home / "serve" / SERVICE / "gateway.json"
    while not state.exists():
        assert run.running(), run.wait()
        time.sleep(0.05)
    url = json.loads(state.read_bytes())["rest_url"]
    answer = httpx.post(
        f"{url}/v1/answer", content=b"a red circle", headers={"content-type": "text/plain"}
    )
    assert answer.json()["items"][0]["caption"] == "a red circle on paper"
    os.kill(run.pid, signal.SIGTERM)
    assert run.wait().code == 0


def test_the_schema_is_json(fresh: Stage) -> None:
    schema = json.loads(fresh.cli("schema").stdout)
    assert "service" in schema["properties"]
