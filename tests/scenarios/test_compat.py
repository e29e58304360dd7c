"""`modalgate compat` as people use it: two states, the matrix, and by the clock."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.scenarios.small import SERVICE, Project
from tests.scenarios.stage import Stage, without_settings

pytestmark = pytest.mark.slow

WAIT_S = 400


def test_two_states_with_the_same_encoders_are_compatible_and_nothing_is_run(
    released: Stage,
) -> None:
    ran = released.cli("compat", f"{SERVICE}:1", f"{SERVICE}@champion", "--json")
    assert (ran.code, ran.document["status"]) == (0, "done")
    words = {item["encoder"]: item["word"] for item in ran.document["comparisons"]}
    assert words == {"image": "COMPATIBLE", "text": "COMPATIBLE"}
    (matrix,) = ran.document["matrices"]
    assert [cell["word"] for cell in matrix["cells"]] == ["COMPATIBLE"]


def test_a_file_that_was_never_released_is_compared_with_what_serves_and_kept_as_an_artifact(
    released: Stage, project: Project
) -> None:
    project.write_image_encoder(seed=7)
    project.edit(lambda document: document["encoders"]["image"].update(version="1.1.0"))
    ran = released.cli(
        "compat", "--all", "--service", SERVICE, "--candidate", str(project.pipeline), "--json"
    )
    document = ran.document
    assert (ran.code, document["status"]) == (3, "blocked")
    image = next(item for item in document["comparisons"] if item["encoder"] == "image")
    assert image["word"] == "REINDEX"
    assert image["metrics"]["fp32_nonfinite_items_share"] == 0
    assert "part at" in json.dumps(image["findings"])
    (matrix,) = document["matrices"]
    assert [row["version"] for row in matrix["rows"]] == ["1.0.0", "1.1.0"]
    assert [row["role"] for row in matrix["rows"]] == ["live", "candidate"]

    stored = released.cli("compat", "matrix", SERVICE, "--json").document
    assert stored["matrices"] == document["matrices"]
    kept = released.evidence("compatibility-matrix")
    assert kept["matrices"] == document["matrices"]
    assert released.store.reference(f"compatibility/{SERVICE}") == document["report"]
    assert released.orphans() == []
    page = (released.home / "evidence" / SERVICE / "compatibility-matrix.md").read_text()
    assert "| image 1.1.0 |" in page
    shown = released.cli("compat", "matrix", SERVICE).stdout
    assert "image 1.1.0" in shown
    assert "recall@" in shown


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 2),
        (("nonsense", "also"), 2),
        ((f"{SERVICE}:9", f"{SERVICE}:1"), 2),
        ((f"{SERVICE}@nobody", f"{SERVICE}:1"), 2),
        (("matrix", SERVICE), 2),
        ((f"{SERVICE}:1", f"{SERVICE}:1", "--encoder", "nose"), 2),
        (("--all", "--watch", "every day"), 2),
    ],
)
def test_what_names_nothing_is_bad_input(
    released: Stage, words: tuple[str, ...], code: int
) -> None:
    ran = released.cli("compat", *words, "--json")
    assert (ran.code, ran.document["status"]) == (code, "bad-input")
    assert ran.document["error"]["remedy"]


def test_where_nothing_is_live_there_is_nothing_to_compare(fresh: Stage) -> None:
    ran = fresh.cli("compat", "--all", "--json")
    assert (ran.code, ran.document["status"]) == (2, "bad-input")


@pytest.mark.heavy
def test_the_flow_runs_by_the_clock_on_an_embedded_server(released: Stage) -> None:
    given = {name: value for name, value in released.environment.items() if value is not None}
    matrix = released.home / "evidence" / SERVICE / "compatibility-matrix.json"
    log = released.folder / "watch.log"
    with log.open("wb") as output:
        watching = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", "compat", "--all", "--watch", "* * * * *"],
            env={**without_settings(), **given},
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            assert _eventually(lambda: "Completed" in _states(released.home)), log.read_text()
        finally:
            watching.send_signal(signal.SIGTERM)
            watching.wait(120)
    assert matrix.is_file()
    assert released.processes() == []


def _states(home: Path) -> list[str]:
    """States of the runs that a schedule started, read from the server's own database."""
    path = home / "prefect" / "prefect.db"
    if not path.is_file():
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        query = "select state_name from flow_run where deployment_id is not null and auto_scheduled"
        try:
            return [name for (name,) in database.execute(query)]
        except sqlite3.OperationalError:  # it is still being made
            return []


def _eventually(met: object, seconds: float = WAIT_S) -> bool:
    assert callable(met)
    deadline = time.monotonic() + seconds
    while not met():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True
