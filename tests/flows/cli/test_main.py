"""The command line costs what a verb needs, and no more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flows.cli.main import VERBS, build

HEAVY = (
    "torch", "mlflow", "prefect", "great_expectations", "presidio_analyzer", "spacy", "openvino",
    "onnxruntime", "onnx", "boto3", "pandas",
)  # fmt: skip
PROGRAM = """
import sys
sys.argv = ["modalgate", *sys.argv[1:]]
from flows.cli.main import run
try:
    run()
except SystemExit as ended:
    assert not ended.code, ended.code
print(*sys.modules, file=sys.stderr)
"""


def imported_by(*arguments: str, home: Path) -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={"MODALGATE_HOME": str(home), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ended.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [("--help",), ("schema",), ("schema", "--help")])
def test_help_and_schema_import_nothing_heavy(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert imported_by(*arguments, home=tmp_path).isdisjoint(HEAVY)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["status", "stop", "rollback", "review"])
def test_verbs_that_build_nothing_import_no_builder(tmp_path: Path, verb: str) -> None:
    found = imported_by(verb, "--help", home=tmp_path)
    assert found.isdisjoint({"great_expectations", "presidio_analyzer", "spacy", "torch"})


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_known_by_name_before_it_is_imported(verb: str) -> None:
    app = build([])
    assert verb in {command.name for command in app.registered_commands}


def test_every_verb_has_one_line_of_help() -> None:
    assert all(text.endswith(".") and len(text) < 80 for text in VERBS.values())
