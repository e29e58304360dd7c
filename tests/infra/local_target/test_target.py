from __future__ import annotations

import json
import os
import signal
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from infra.clocks import SystemClock
from infra.local_target import LocalTarget
from tests.infra.local_target.places import SERVICE, Place
from validators.contracts.deployment import DeploymentPhase, Revision
from validators.contracts.errors import (
    BadInput,
    Conflict,
    ModalgateError,
    NotFound,
    Refused,
    Unavailable,
)
from validators.rollout.probe import is_probe


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.target(drain_timeout_s=2).stop(SERVICE)
    assert gateways(place) == []


@pytest.fixture
def target(place: Place) -> LocalTarget:
    return place.target()


def gateways(place: Place) -> list[int]:
    """The gateway processes that serve from this place's root."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        arguments = process.info["cmdline"] or []
        alive = process.info["status"] != psutil.STATUS_ZOMBIE
        if alive and any(item.startswith(f"{place.root}/") for item in arguments):
            found.append(process.pid)
    return found


def kill_gateway(target: LocalTarget) -> None:
    pid = target.status(SERVICE).pid
    assert pid is not None
    process = psutil.Process(pid)
    process.kill()
    process.wait(30)


def test_the_first_revision_takes_all_traffic(place: Place, target: LocalTarget) -> None:
    status = target.apply(place.revision("one"))
    assert (status.phase, status.stable, status.canary) == (DeploymentPhase.SERVING, "one", None)
    assert [(item.name, item.ready, item.percent) for item in status.revisions] == [
        ("one", True, 100)
    ]
    assert status.rest_url and status.grpc_address and status.pid


def test_a_later_revision_comes_up_without_traffic(place: Place, target: LocalTarget) -> None:
    target.apply(place.revision("one"))
    status = target.apply(place.revision("two"))
    assert (status.phase, status.stable, status.canary) == (DeploymentPhase.CANARY, "one", "two")
    assert [(item.name, item.percent) for item in status.revisions] == [("one", 100), ("two", 0)]


def test_applying_what_is_there_does_nothing(place: Place, target: LocalTarget) -> None:
    first = target.apply(place.revision("one"))
    again = target.apply(place.revision("one"))
    assert again == first
    assert place.journal == ["load one", "traffic one None 0"]


def test_a_promoted_canary_serves_and_the_old_one_is_unloaded(
    place: Place, target: LocalTarget
) -> None:
    target.apply(place.revision("one"))
    target.apply(place.revision("two"))
    target.set_canary(SERVICE, 25)
    assert target.status(SERVICE).canary_percent == 25
    status = target.promote(SERVICE)
    assert (status.stable, status.canary) == ("two", None)
    assert place.journal[-3:] == ["traffic one two 25", "traffic two None 0", "unload one"]
    assert target.promote(SERVICE) == status


def test_rolling_back_moves_the_traffic_before_it_unloads(
    place: Place, target: LocalTarget
) -> None:
    target.apply(place.revision("one"))
    target.apply(place.revision("two"))
    target.set_canary(SERVICE, 50)
    status = target.roll_back(SERVICE, "errors 5 %")
    assert (status.stable, status.canary) == ("one", None)
    assert "errors 5 %" in status.message
    assert place.journal[-2:] == ["traffic one None 0", "unload two"]


def test_rolling_back_twice_loses_one_revision_only(place: Place, target: LocalTarget) -> None:
    target.apply(place.revision("zero"))
    target.apply(place.revision("one"))
    target.promote(SERVICE)
    target.apply(place.revision("two"))
    first = target.roll_back(SERVICE, "slow")
    assert target.roll_back(SERVICE, "slow") == first
    assert first.stable == "one"


def test_without_a_canary_the_known_good_revision_comes_back(
    place: Place, target: LocalTarget
) -> None:
    target.apply(place.revision("one"))
    target.apply(place.revision("two"))
    target.promote(SERVICE)
    status = target.roll_back(SERVICE, "complaints")
    assert (status.stable, status.phase) == ("one", DeploymentPhase.SERVING)
    assert target.roll_back(SERVICE, "complaints").stable == "one"


def test_there_is_no_way_back_from_the_first_revision(place: Place, target: LocalTarget) -> None:
    target.apply(place.revision("one"))
    with pytest.raises(Conflict):
        target.roll_back(SERVICE, "slow")
    assert target.status(SERVICE).phase is DeploymentPhase.SERVING


def test_a_known_good_bundle_that_is_gone_leaves_the_service_as_it_was(
    place: Place, target: LocalTarget
) -> None:
    one = place.revision("one")
    target.apply(one)
    target.apply(place.revision("two"))
    target.promote(SERVICE)
    (Path(one.bundle_path) / "bundle.json").unlink()
    with pytest.raises(NotFound):
        target.roll_back(SERVICE, "slow")
    assert target.status(SERVICE).stable == "two"


@pytest.mark.parametrize("percent", [-1, 101, True, 2.5])
def test_a_share_that_is_no_percent_is_refused(
    place: Place, target: LocalTarget, percent: int
) -> None:
    target.apply(place.revision("one"))
    target.apply(place.revision("two"))
    with pytest.raises(BadInput):
        target.set_canary(SERVICE, percent)


def test_a_canary_with_traffic_is_not_replaced(place: Place, target: LocalTarget) -> None:
    target.apply(place.revision("one"))
    target.apply(place.revision("two"))
    target.set_canary(SERVICE, 5)
    with pytest.raises(Conflict):
        target.apply(place.revision("three"))


def test_a_canary_without_traffic_is_replaced(place: Place, target: LocalTarget) -> None:
    for name in ("one", "two", "three"):
        target.apply(place.revision(name))
    assert target.status(SERVICE).canary == "three"
    assert place.journal[-1] == "unload two"


def test_verbs_on_nothing_say_so(target: LocalTarget) -> None:
    assert target.status(SERVICE).phase is DeploymentPhase.ABSENT
    for verb in (
        target.promote,
        target.stats,
        target.reconcile,
        lambda name: target.set_canary(name, 5),
        lambda name: target.roll_back(name, "slow"),
    ):
        with pytest.raises(NotFound):
            verb(SERVICE)
    target.stop(SERVICE)


@pytest.mark.parametrize("name", ["", "..", "a/b", "-a", "A", "a" * 64, "../other"])
def test_names_never_leave_the_root(target: LocalTarget, name: str) -> None:
    for verb in (target.status, target.stop, target.promote):
        with pytest.raises(BadInput):
            verb(name)


def test_a_refused_bundle_leaves_the_service_as_it_was(place: Place, target: LocalTarget) -> None:
    before = target.apply(place.revision("one"))
    with pytest.raises(Refused, match="signature"):
        target.apply(place.revision("two", ["refuse"]))
    assert target.status(SERVICE) == before


def test_a_folder_with_another_bundle_is_refused(place: Place, target: LocalTarget) -> None:
    revision = place.revision("one")
    (Path(revision.bundle_path) / "bundle.json").write_text("{}")
    with pytest.raises(Refused):
        target.apply(revision)


def test_a_revision_that_kills_the_gateway_does_not_take_the_service_down(
    place: Place, target: LocalTarget
) -> None:
    before = target.apply(place.revision("one"))
    with pytest.raises(Unavailable):
        target.apply(place.revision("two", ["crash"]))
    after = target.status(SERVICE)
    assert (after.phase, after.stable, after.canary) == (DeploymentPhase.SERVING, "one", None)
    assert after.pid != before.pid and after.rest_url == before.rest_url


def test_a_dead_gateway_is_degraded_until_a_verb_restores_it(
    place: Place, target: LocalTarget
) -> None:
    target.apply(place.revision("one"))
    before = target.apply(place.revision("two"))
    target.set_canary(SERVICE, 25)
    kill_gateway(target)
    assert target.status(SERVICE).phase is DeploymentPhase.DEGRADED
    with pytest.raises(Unavailable):
        target.stats(SERVICE)
    after = place.target().reconcile(SERVICE)
    assert (after.phase, after.canary_percent) == (DeploymentPhase.CANARY, 25)
    assert after.rest_url == before.rest_url and after.pid != before.pid


def test_a_canary_that_cannot_be_loaded_again_can_still_be_rolled_back(
    place: Place, target: LocalTarget
) -> None:
    target.apply(place.revision("one"))
    target.apply(place.revision("two"))
    target.set_canary(SERVICE, 50)
    place.revision("two", ["crash"])
    kill_gateway(target)
    status = target.roll_back(SERVICE, "it crashes")
    assert (status.phase, status.stable) == (DeploymentPhase.SERVING, "one")


def test_stats_are_counters_by_revision(place: Place, target: LocalTarget) -> None:
    target.apply(place.revision("one"))
    target.apply(place.revision("two"))
    stats = target.stats(SERVICE)
    assert [(item.name, item.requests, item.errors) for item in stats] == [
        ("one", 3, 1),
        ("two", 3, 1),
    ]
    assert stats[0].latency_ms == (1.0, 2.5)


def test_the_gateway_outlives_its_caller_and_keeps_its_token_private(
    place: Place, target: LocalTarget
) -> None:
    status = target.apply(place.revision("one"))
    assert status.pid and os.getsid(status.pid) == status.pid
    token = place.root / SERVICE / "token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert token.read_text() not in " ".join(psutil.Process(status.pid).cmdline())


def test_a_probe_is_marked_by_the_token_of_the_gateway_that_runs(
    place: Place, target: LocalTarget
) -> None:
    with pytest.raises(NotFound):
        target.mark_probe(SERVICE, b"body")
    target.apply(place.revision("one"))
    mark = target.mark_probe(SERVICE, b"body")
    token = (place.root / SERVICE / "token").read_text().strip()
    assert is_probe(token, b"body", mark)
    assert not is_probe(token, b"other", mark)
    assert not is_probe(token, b"body", None)
    assert token not in mark


def test_stopping_drains_and_the_next_apply_starts_on_the_stable_revision(
    place: Place, target: LocalTarget
) -> None:
    target.apply(place.revision("one"))
    target.stop(SERVICE)
    target.stop(SERVICE)
    assert place.journal[-1] == "drained" and gateways(place) == []
    assert target.status(SERVICE).phase is DeploymentPhase.ABSENT
    status = target.apply(place.revision("two"))
    assert (status.stable, status.canary) == ("one", "two")


def test_a_forgotten_revision_is_not_what_the_next_one_is_compared_with(
    place: Place, target: LocalTarget
) -> None:
    target.apply(place.revision("one"))
    target.stop(SERVICE, forget=True)
    assert target.status(SERVICE).phase is DeploymentPhase.ABSENT
    status = target.apply(place.revision("two"))
    assert (status.stable, status.canary) == ("two", None)


def test_a_stopped_service_whose_bundle_is_gone_starts_afresh(
    place: Place, target: LocalTarget
) -> None:
    one = place.revision("one")
    target.apply(one)
    target.stop(SERVICE)
    (Path(one.bundle_path) / "bundle.json").unlink()
    Path(one.bundle_path).rmdir()
    assert target.apply(place.revision("two")).stable == "two"


def test_a_gateway_that_ignores_the_request_to_end_is_killed(place: Place) -> None:
    target = place.target("--misbehave", "ignore-term", drain_timeout_s=0.5)
    target.apply(place.revision("one"))
    target.stop(SERVICE)
    assert gateways(place) == []


def test_a_gateway_that_fails_at_start_gives_its_reason_without_the_token(place: Place) -> None:
    target = place.target("--misbehave", "fail")
    with pytest.raises(Unavailable, match="cannot read the settings") as caught:
        target.apply(place.revision("one"))
    token = (place.root / SERVICE / "token").read_text()
    assert token not in str(caught.value)
    assert target.status(SERVICE).phase is DeploymentPhase.ABSENT


def test_a_gateway_that_never_listens_is_ended(place: Place) -> None:
    with pytest.raises(Unavailable, match="did not listen"):
        place.target("--misbehave", "hang", start_timeout_s=1).apply(place.revision("one"))
    assert gateways(place) == []


def test_a_missing_program_is_unavailable(place: Place) -> None:
    target = LocalTarget(place.root, ["/no/such/gateway"], SystemClock(), trusted_keys=place.folder)
    with pytest.raises(Unavailable, match="cannot be started"):
        target.apply(place.revision("one"))


def test_a_declared_port_that_is_taken_is_unavailable_with_the_reason(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        target = place.target(rest_port=other.getsockname()[1])
        with pytest.raises(Unavailable, match="already in use"):
            target.apply(place.revision("one"))


def test_a_number_given_to_another_process_is_never_taken_for_the_gateway(
    place: Place, target: LocalTarget
) -> None:
    target.apply(place.revision("one"))
    kill_gateway(target)
    path = place.root / SERVICE / "process.json"
    record = json.loads(path.read_bytes())
    record["process"]["pid"] = os.getpid()
    path.write_text(json.dumps(record))
    assert target.status(SERVICE).phase is DeploymentPhase.DEGRADED
    heard: list[int] = []
    previous = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        target.stop(SERVICE)
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert heard == []


def test_two_callers_at_once_start_one_gateway(place: Place) -> None:
    raised: list[ModalgateError] = []

    def apply(revision: Revision) -> None:
        try:
            place.target().apply(revision)
        except ModalgateError as error:
            raised.append(error)

    revisions = [place.revision(name) for name in ("one", "two")]
    threads = [threading.Thread(target=apply, args=(item,)) for item in revisions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    status = place.target().status(SERVICE)
    assert raised == [] and len(gateways(place)) == 1
    assert {status.stable, status.canary} == {"one", "two"}
