"""The registry on a SQLite file and on a real MLflow server."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mlflow import MlflowClient

from infra.registry.ledger import FileLedger
from infra.registry.mlflow import MlflowRegistry
from infra.registry.open import open_ledger, open_registry
from tests.infra.manual_clock import ManualClock
from tests.infra.registry.conftest import Server, Setting
from validators.contracts.digest import Digest, digest_bytes
from validators.contracts.errors import (
    BadInput,
    Conflict,
    ModalgateError,
    NotFound,
    Refused,
    TooLarge,
    Unavailable,
)
from validators.contracts.ports import ModelVersion, Registry

_PORT: type[Registry] = MlflowRegistry

ONE, TWO = digest_bytes(b"one"), digest_bytes(b"two")
EVIDENCE = {"verdicts.json": b"[]", "drift/report.json": b"{}"}
TAGS = {"gate.drift": "PASS", "gate.privacy": "WARN"}


def register(
    registry: MlflowRegistry, model: str, bundle: Digest = ONE, **changes: dict[str, str]
) -> ModelVersion:
    return registry.register(model, bundle, evidence=EVIDENCE, tags=changes.get("tags", TAGS))


def active_runs(setting: Setting) -> list[str]:
    """The status of every run of the model."""
    client = MlflowClient(setting.tracking_uri)
    experiment = client.get_experiment_by_name(f"modalgate/{setting.model}")
    assert experiment is not None
    return [run.info.status for run in client.search_runs([experiment.experiment_id])]


def test_a_bundle_becomes_a_version_with_tags_and_evidence(
    registry: MlflowRegistry, setting: Setting
) -> None:
    made = register(registry, setting.model)
    assert (made.model, made.version, made.bundle) == (setting.model, "1", ONE)
    assert made.tags.items() >= TAGS.items()
    assert made.tags["modalgate.bundle"] == ONE
    assert made.aliases == ()
    assert registry.version(setting.model, "1") == made
    assert registry.versions(setting.model) == [made]
    assert registry.evidence(setting.model, "1") == EVIDENCE
    assert active_runs(setting) == ["FINISHED"]


def test_the_same_bundle_is_the_same_version(registry: MlflowRegistry, setting: Setting) -> None:
    first = register(registry, setting.model)
    assert register(setting.open(), setting.model, tags={"gate.drift": "FAIL"}) == first
    other = register(registry, setting.model, TWO)
    assert other.version == "2"
    assert register(registry, setting.model) == first
    assert [item.version for item in registry.versions(setting.model)] == ["1", "2"]
    assert active_runs(setting) == ["FINISHED", "FINISHED"]


def test_threads_that_register_one_bundle_get_one_version(setting: Setting) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: register(setting.open(), setting.model), range(4)))
    assert {item.version for item in made} == {"1"}
    assert active_runs(setting) == ["FINISHED"]


_DOOMED = """
import json, os, signal, sys
from pathlib import Path
from infra.registry.ledger import FileLedger
from infra.registry.mlflow import MlflowRegistry
from tests.infra.manual_clock import ManualClock

uri, folder, artifacts, model, bundle, fatal = sys.argv[1:]

def die(step):
    if step == fatal:
        os.kill(os.getpid(), signal.SIGKILL)

registry = MlflowRegistry(
    uri, FileLedger(Path(folder) / "ledger.jsonl", ManualClock()),
    lock_folder=Path(folder) / "locks", artifact_root=Path(artifacts) if artifacts else None,
    clock=ManualClock(), on_step=die,
)
if fatal == "recorded":
    registry.move_alias(model, "champion", "1", expected=None, actor="ada", reason="first")
else:
    registry.register(model, bundle, evidence={"old.json": b"old"}, tags={"gate.drift": "PASS"})
"""


def kill_at(setting: Setting, step: str, bundle: Digest = ONE) -> None:
    arguments = [setting.tracking_uri, str(setting.folder), str(setting.artifact_root or "")]
    child = subprocess.run(
        [sys.executable, "-c", _DOOMED, *arguments, setting.model, bundle, step], check=False
    )
    assert child.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "step"),
    [
        *(("sqlite", step) for step in ("run", "evidence", "model", "version", "closed")),
        *(("server", step) for step in ("evidence", "version")),
    ],
    indirect=["setting"],
)
def test_what_a_killed_registration_left_is_finished_by_the_next(
    setting: Setting, step: str
) -> None:
    kill_at(setting, step)
    registry = setting.open()
    made = register(registry, setting.model)
    assert (made.version, made.bundle) == ("1", ONE)
    assert registry.versions(setting.model) == [made]
    assert active_runs(setting) == ["FINISHED"]
    unfinished = step in {"run", "evidence", "model"}
    expected = EVIDENCE if unfinished else {"old.json": b"old"}
    assert registry.evidence(setting.model, "1") == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "step"),
    [
        *(("sqlite", step) for step in ("run", "model", "version")),
        *(("server", step) for step in ("evidence", "version")),
    ],
    indirect=["setting"],
)
def test_what_a_killed_registration_of_another_bundle_left_is_settled(
    setting: Setting, step: str
) -> None:
    kill_at(setting, step, TWO)
    registry = setting.open()
    register(registry, setting.model)
    bundles = [item.bundle for item in registry.versions(setting.model)]
    assert bundles == ([TWO, ONE] if step == "version" else [ONE])
    assert active_runs(setting) == ["FINISHED"] * len(bundles)


@pytest.mark.slow
def test_a_move_that_was_killed_after_its_record_is_finished_by_the_same_call(
    setting: Setting,
) -> None:
    registry = setting.open()
    register(registry, setting.model)
    kill_at(setting, "recorded")
    assert registry.alias(setting.model, "champion") is None
    registry.move_alias(setting.model, "champion", "1", expected=None, actor="ada", reason="first")
    assert [entry.action for entry in setting.ledger.entries()] == ["move-alias"]


def move(
    registry: MlflowRegistry, model: str, alias: str, to: str | None, expected: str | None
) -> None:
    registry.move_alias(model, alias, to, expected=expected, actor="ada", reason="because")


def test_aliases_move_from_where_they_are_expected_and_the_ledger_says_so(
    registry: MlflowRegistry, setting: Setting
) -> None:
    model = setting.model
    register(registry, model)
    register(registry, model, TWO)
    assert registry.alias(model, "champion") is None
    move(registry, model, "champion", "1", None)
    move(registry, model, "rollback", "1", None)
    move(registry, model, "champion", "2", "1")
    for expected in (None, "1", "3"):
        with pytest.raises(Conflict, match="version 2"):
            move(registry, model, "champion", "1", expected)
    champion = registry.alias(model, "champion")
    assert champion is not None
    assert (champion.version, champion.aliases) == ("2", ("champion",))
    assert [item.aliases for item in registry.versions(model)] == [("rollback",), ("champion",)]
    move(registry, model, "champion", "2", "2")
    move(registry, model, "champion", None, "2")
    assert registry.alias(model, "champion") is None
    moves = [dict(entry.details) for entry in setting.ledger.entries(model)]
    assert [(item["alias"], item["from"], item["to"]) for item in moves] == [
        ("champion", "", "1"),
        ("rollback", "", "1"),
        ("champion", "1", "2"),
        ("champion", "2", ""),
    ]
    assert {entry.actor for entry in setting.ledger.entries()} == {"ada"}
    assert setting.ledger.verify() == 4


def test_an_alias_does_not_move_to_what_is_not_registered(
    registry: MlflowRegistry, setting: Setting
) -> None:
    register(registry, setting.model)
    for version in ("2", "abc", "", "-1"):
        with pytest.raises(NotFound):
            move(registry, setting.model, "champion", version, None)
    assert setting.ledger.entries() == []


def test_a_move_by_other_means_is_noted_in_the_ledger(
    registry: MlflowRegistry, setting: Setting
) -> None:
    register(registry, setting.model)
    register(registry, setting.model, TWO)
    move(registry, setting.model, "champion", "1", None)
    client = MlflowClient(setting.tracking_uri, setting.tracking_uri)
    client.set_registered_model_alias(setting.model, "champion", "2")
    with pytest.raises(Conflict):
        move(registry, setting.model, "champion", "2", "1")
    move(registry, setting.model, "champion", "1", "2")
    actions = [entry.action for entry in setting.ledger.entries()]
    assert actions == ["move-alias", "note-alias", "move-alias"]


def test_of_racing_movers_exactly_one_wins(registry: MlflowRegistry, setting: Setting) -> None:
    versions = [
        register(registry, setting.model, digest_bytes(bytes([number]))).version
        for number in range(4)
    ]

    def attempt(version: str) -> str | None:
        try:
            move(setting.open(), setting.model, "champion", version, None)
        except Conflict:
            return None
        return version

    with ThreadPoolExecutor(4) as pool:
        won = [item for item in pool.map(attempt, versions) if item]
    champion = registry.alias(setting.model, "champion")
    assert champion is not None
    assert won == [champion.version]
    assert setting.ledger.verify() == 1


def test_tags_can_be_added_and_changed_but_not_the_registrys_own(
    registry: MlflowRegistry, setting: Setting
) -> None:
    register(registry, setting.model)
    registry.set_tags(setting.model, "1", {"gate.drift": "WARN", "review.state": "approved"})
    tags = registry.version(setting.model, "1").tags
    assert (tags["gate.drift"], tags["review.state"]) == ("WARN", "approved")
    with pytest.raises(BadInput, match="registry alone"):
        registry.set_tags(setting.model, "1", {"modalgate.bundle": TWO})
    with pytest.raises(TooLarge):
        registry.set_tags(setting.model, "1", {"long": "x" * 5001})
    with pytest.raises(NotFound):
        registry.set_tags(setting.model, "2", {"a": "b"})
    assert registry.version(setting.model, "1").bundle == ONE


def test_versions_and_runs_are_read_page_by_page(
    registry: MlflowRegistry, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("mlflow", "registration"):
        monkeypatch.setattr(f"infra.registry.{module}._PAGE", 1)
    for number in range(3):
        register(registry, setting.model, digest_bytes(bytes([number])))
    assert [item.version for item in registry.versions(setting.model)] == ["1", "2", "3"]


def test_a_deleted_experiment_says_how_to_restore_it(
    registry: MlflowRegistry, setting: Setting
) -> None:
    register(registry, setting.model)
    client = MlflowClient(setting.tracking_uri)
    experiment = client.get_experiment_by_name(f"modalgate/{setting.model}")
    assert experiment is not None
    client.delete_experiment(experiment.experiment_id)
    with pytest.raises(Conflict, match="mlflow experiments restore"):
        register(registry, setting.model, TWO)


def test_an_unknown_model_has_no_versions_and_no_aliases(
    registry: MlflowRegistry, setting: Setting
) -> None:
    assert registry.versions("nobody") == []
    assert registry.alias("nobody", "champion") is None
    with pytest.raises(NotFound):
        registry.version("nobody", "1")
    with pytest.raises(NotFound):
        registry.evidence("nobody", "1")


def test_versions_that_somebody_else_registered_are_not_ours(
    registry: MlflowRegistry, setting: Setting, tmp_path: Path
) -> None:
    register(registry, setting.model)
    client = MlflowClient(setting.tracking_uri, setting.tracking_uri)
    run = client.get_model_version(setting.model, "1").run_id
    source = client.get_run(str(run)).info.artifact_uri
    client.create_model_version(setting.model, source, str(run), await_creation_for=0)
    assert [item.version for item in registry.versions(setting.model)] == ["1"]
    with pytest.raises(NotFound):
        registry.version(setting.model, "2")
    with pytest.raises(NotFound):
        move(registry, setting.model, "champion", "2", None)


def test_changed_evidence_is_refused(registry: MlflowRegistry, setting: Setting) -> None:
    register(registry, setting.model)
    client = MlflowClient(setting.tracking_uri, setting.tracking_uri)
    run = str(client.get_model_version(setting.model, "1").run_id)
    forged = setting.folder / "verdicts.json"
    forged.write_bytes(b"[PASS]")
    client.log_artifact(run, str(forged), "evidence")
    with pytest.raises(Refused, match=r"verdicts\.json"):
        registry.evidence(setting.model, "1")


@pytest.mark.parametrize("model", ["", "a/b", "a'b", "a:b", ".a", "x" * 101, "a\n"])
def test_a_model_of_another_form_is_refused(registry: MlflowRegistry, model: str) -> None:
    with pytest.raises(BadInput):
        register(registry, model)
    with pytest.raises(BadInput):
        registry.versions(model)
    with pytest.raises(BadInput):
        registry.alias(model, "champion")


@pytest.mark.parametrize("alias", ["", "latest", "v1", "Champion", "a b", "a'b"])
def test_an_alias_of_another_form_is_refused(
    registry: MlflowRegistry, setting: Setting, alias: str
) -> None:
    with pytest.raises(BadInput):
        registry.alias(setting.model, alias)
    with pytest.raises(BadInput):
        move(registry, setting.model, alias, None, "1")


def test_what_is_no_digest_is_no_bundle(registry: MlflowRegistry, setting: Setting) -> None:
    with pytest.raises(BadInput):
        register(registry, setting.model, Digest("sha256:short"))


def dead_uri() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://user:secret@127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize("scheme", ["http", "postgresql", "mysql+pymysql"])
def test_a_registry_that_is_down_is_unavailable_without_showing_a_password(
    tmp_path: Path, scheme: str
) -> None:
    registry = open_registry(
        tmp_path, ManualClock(), tracking_uri=dead_uri().replace("http", scheme)
    )
    with pytest.raises(Unavailable, match="Start the MLflow server") as caught:
        register(registry, "shop")
    assert "secret" not in str(caught.value)
    with pytest.raises(Unavailable):
        registry.versions("shop")


@pytest.mark.parametrize("uri", ["file:///x", "ftp://x", "sqlite://", "databricks", "http://"])
def test_a_uri_of_another_kind_is_the_callers_mistake(tmp_path: Path, uri: str) -> None:
    registry = open_registry(tmp_path, ManualClock(), tracking_uri=uri)
    with pytest.raises(BadInput, match="sqlite"):
        registry.versions("shop")


def test_a_database_file_that_is_none_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "registry").mkdir()
    (tmp_path / "registry" / "mlflow.db").write_bytes(b"not a database" * 100)
    with pytest.raises(Unavailable):
        open_registry(tmp_path, ManualClock()).versions("shop")


def test_the_embedded_registry_lives_in_its_state_folder_for_its_owner_alone(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    registry = open_registry(home, ManualClock())
    register(registry, "shop")
    move(registry, "shop", "candidate", "1", None)
    assert open_registry(home, ManualClock()).versions("shop")[0].aliases == ("candidate",)
    assert isinstance(open_ledger(home, ManualClock()), FileLedger)
    assert open_ledger(home, ManualClock()).verify() == 1
    assert [item.name for item in home.iterdir()] == ["registry"]
    assert (home / "registry").stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
def test_a_server_that_goes_away_is_unavailable_and_serves_again(
    server: Server, tmp_path: Path
) -> None:
    setting = Setting(server.uri, tmp_path, None, "shop-away")
    registry = setting.open()
    made = register(registry, setting.model)
    server.stop()
    try:
        calls = [
            lambda: register(registry, setting.model, TWO),
            lambda: move(registry, setting.model, "champion", "1", None),
        ]
        for call in calls:
            with pytest.raises(ModalgateError) as caught:
                call()
            assert isinstance(caught.value, Unavailable)
    finally:
        server.start()
    assert registry.versions(setting.model) == [made]
    move(registry, setting.model, "champion", "1", None)
    assert [entry.action for entry in setting.ledger.entries()] == ["move-alias"]


_REGISTRANT = """
import sys
from pathlib import Path
from infra.clocks import SystemClock
from infra.registry.open import open_registry
from validators.contracts.digest import digest_bytes
registry = open_registry(Path(sys.argv[1]), SystemClock())
print("ready", flush=True)
sys.stdin.readline()
for name in (b"same", sys.argv[2].encode()):
    made = registry.register("shop", digest_bytes(name), evidence={"a": name}, tags={})
    print(made.version, flush=True)
"""


@pytest.mark.slow
def test_processes_that_meet_in_a_fresh_state_folder_make_one_of_everything(
    tmp_path: Path,
) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _REGISTRANT, str(tmp_path), name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in ("one", "two")
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    said = [racer.communicate()[0].split() for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0]
    assert [item[0] for item in said] == ["1", "1"]
    assert sorted(item[1] for item in said) == ["2", "3"]
    assert len(open_registry(tmp_path, ManualClock()).versions("shop")) == 3
