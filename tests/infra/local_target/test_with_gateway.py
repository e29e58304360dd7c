"""The local target over the real gateway process: what it answers while revisions change."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from infra.clocks import SystemClock
from infra.local_target import LocalTarget
from tests.services.gateway.toy import SERVICE, Toy, make_toy
from validators.contracts.deployment import DeploymentPhase, Revision
from validators.contracts.errors import Refused
from validators.contracts.pipeline import Fusion

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "tests.infra.local_target.toy_gateway"]
CHECKOUT = Path(__file__).parents[3]


def revision(name: str, toy: Toy) -> Revision:
    return Revision(SERVICE, name, toy.digest, str(toy.path))


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalTarget]:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    target = LocalTarget(
        tmp_path / "deployments", COMMAND, SystemClock(), trusted_keys=tmp_path / "trusted"
    )
    yield target
    target.stop(SERVICE)


def ask(url: str, count: int) -> None:
    body = {
        "inputs": [
            {"name": "input_ids", "datatype": "INT64", "shape": [1, 1], "data": [1]},
            {"name": "attention_mask", "datatype": "INT64", "shape": [1, 1], "data": [1]},
        ]
    }
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        for number in range(count):
            answer = client.post(
                "/v2/models/text/infer", json=body, headers={"x-request-id": f"request-{number}"}
            )
            answer.raise_for_status()


def test_revisions_come_and_go_under_requests(tmp_path: Path, target: LocalTarget) -> None:
    old, new = make_toy(tmp_path), make_toy(tmp_path, fusion=Fusion("any"))
    first = target.apply(revision("old", old))
    assert first.phase is DeploymentPhase.SERVING and first.rest_url
    ask(first.rest_url, 5)
    target.apply(revision("new", new))
    status = target.set_canary(SERVICE, 50)
    assert (status.phase, status.canary_percent) == (DeploymentPhase.CANARY, 50)
    ask(first.rest_url, 40)
    seen = Counter({item.name: item.requests for item in target.stats(SERVICE)})
    assert seen.total() == 45 and seen["new"] > 5 and seen["old"] > 10
    assert target.roll_back(SERVICE, "a test").stable == "old"
    ask(first.rest_url, 5)
    target.apply(revision("new", new))
    promoted = target.promote(SERVICE)
    assert (promoted.stable, promoted.canary) == ("new", None)
    ask(first.rest_url, 5)
    assert target.roll_back(SERVICE, "complaints").stable == "old"


def test_a_bundle_that_was_changed_is_refused_and_the_service_goes_on(
    tmp_path: Path, target: LocalTarget
) -> None:
    old, new = make_toy(tmp_path), make_toy(tmp_path, fusion=Fusion("any"))
    status = target.apply(revision("old", old))
    changed = next(path for path in (new.path / "objects").iterdir())
    changed.write_bytes(changed.read_bytes() + b"!")
    with pytest.raises(Refused):
        target.apply(revision("new", new))
    assert target.status(SERVICE) == status
