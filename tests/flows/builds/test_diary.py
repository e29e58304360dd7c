"""A builder's faults are written down once each, and found again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flows.builds.diary import MAX_LOG_BYTES, last_line, said_by

_TELL = """
import logging, sys
from flows.builds.diary import Diary
logging.basicConfig(format="%(message)s", stream=sys.stderr)
diary = Diary()
for faults in (["full"], ["full"], ["full", "odd"], [], ["full"]):
    diary.tell(faults)
"""


def tell(log: Path) -> list[str]:
    with log.open("ab") as stream:
        subprocess.run([sys.executable, "-c", _TELL], stderr=stream, check=True, timeout=300)
    return log.read_text().splitlines()


def test_a_fault_is_said_again_only_after_it_was_gone(tmp_path: Path) -> None:
    assert tell(tmp_path / "builder.log") == ["full", "odd", "full"]
    assert last_line(tmp_path / "builder.log") == "full"


def test_a_log_that_has_grown_large_starts_anew(tmp_path: Path) -> None:
    log = tmp_path / "builder.log"
    log.write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    assert tell(log) == ["full", "odd", "full"]


def test_no_log_says_nothing(tmp_path: Path) -> None:
    assert last_line(tmp_path / "builder.log") == ""
    (tmp_path / "builder.log").touch()
    assert last_line(tmp_path / "builder.log") == ""


ROW = {"key": "k", "service": "shop", "encoder": "image", "state": "failed", "message": "too large"}
ERROR = {"what": "the disk is full", "where": "/state", "remedy": "Free space."}


@pytest.mark.parametrize(
    ("document", "faults"),
    [
        ({"status": "done", "builds": []}, []),
        ({"builds": [ROW | {"state": "done", "message": ""}]}, []),
        ({"builds": [ROW], "error": ERROR}, ["shop image is failed: too large"]),
        ({"error": ERROR}, ["the disk is full (/state). Free space."]),
    ],
)
def test_the_faults_of_a_build_are_those_of_its_document(
    document: dict[str, object], faults: list[str]
) -> None:
    assert said_by(1, json.dumps(document).encode(), b"noise") == faults


@pytest.mark.parametrize(("answer", "words"), [(b"", b"a\nlast words\n"), (b"{", b"last words")])
def test_a_build_without_a_document_is_known_by_its_last_words(answer: bytes, words: bytes) -> None:
    assert said_by(-9, answer, words) == ["a build ended with code -9: last words"]
    assert said_by(3, b"", b"") == ["a build ended with code 3: no word"]
