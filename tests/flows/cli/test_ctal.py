from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.main import build
from services.ingest.alignment_log import Alignment, AlignmentEvent, event_line

RUNNER = CliRunner()


def log(path: Path, offsets: list[float]) -> Path:
    path.write_bytes(b"".join(
        event_line(AlignmentEvent("clip", ("audio",), 40.0 * at, (("audio", offset),), 0.1,
                                  (("audio", (13,)),), "align", "",
                                  Alignment(items={"audio": 4 * at},
                                            residual_offsets_ms={"audio": 0.0})))
        for at, offset in enumerate(offsets)
    ))  # fmt: skip
    return path


def run(*arguments: str) -> tuple[int, dict[str, object]]:
    ended = RUNNER.invoke(build(["ctal"]), ["ctal", *arguments, "--json"])
    return ended.exit_code, json.loads(ended.stdout)


def test_a_log_in_sync_ends_with_0(tmp_path: Path) -> None:
    code, document = run(str(log(tmp_path / "a.jsonl", [-3.0] * 9)))
    assert (code, document["status"], document["in_sync"]) == (0, "done", True)


def test_a_lost_track_ends_with_3_and_says_when_how_far_and_why(tmp_path: Path) -> None:
    path = log(tmp_path / "a.jsonl", [0.0] * 20 + [-128.0] * 30)
    code, document = run(str(path))
    assert code == 3
    assert document["losses"] == [{
        "input_id": "clip", "track": "audio", "kind": "offset", "first_tick": 20, "first_item": 80,
        "from_ms": 800, "until_ms": 1960, "to_the_end": True, "ticks": 30, "worst_ms": -128,
        "mean_ms": -128, "repaired": True,
        "cause": {"code": "step", "observed_in": "log", "evidence": {}},
    }]  # fmt: skip
    assert "audio of clip at 800 ms" in str(document["error"])
    assert run(str(path), "--residual")[0] == 0


@pytest.mark.parametrize("content", [b"", b"nonsense\n", b"\xff\n"])
def test_a_bad_file_ends_with_2(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    code, document = run(str(path))
    assert (code, document["status"]) == (2, "bad-input")


def test_a_bad_line_is_named_beside_what_the_others_say(tmp_path: Path) -> None:
    path = log(tmp_path / "a.jsonl", [-128.0] * 4)
    path.write_bytes(path.read_bytes() + b"{}\n")
    code, document = run(str(path))
    assert code == 2
    assert document["bad_lines"] == [
        {"line": 5, "reason": "Object missing required field `schema_version`"}
    ]
    assert document["loss_count"] == 1


@pytest.mark.parametrize("name", ["absent.jsonl", "."])
def test_what_is_no_file_is_bad_input(tmp_path: Path, name: str) -> None:
    assert run(str(tmp_path / name))[0] == 2


def test_people_get_tables(tmp_path: Path) -> None:
    path = log(tmp_path / "a.jsonl", [-128.0] * 9)
    ended = RUNNER.invoke(build(["ctal"]), ["ctal", str(path)])
    assert ended.exit_code == 3
    assert "where sync was lost" in ended.stdout
    assert "-128.0 ms" in ended.stdout
    assert "start-offset" in ended.stdout


def test_the_schema_of_a_line_is_printed() -> None:
    ended = RUNNER.invoke(build(["schema"]), ["schema", "ctal"])
    assert ended.exit_code == 0
    assert json.loads(ended.stdout)["title"] == "CTAL event, version 1"
    assert RUNNER.invoke(build(["schema"]), ["schema", "other"]).exit_code == 2
    pipeline = RUNNER.invoke(build(["schema"]), ["schema"])
    assert "service" in json.loads(pipeline.stdout)["properties"]
