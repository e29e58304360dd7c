"""No message is lost, none overtakes another, and nobody is asked too often."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from infra.alerts import outbox as module
from infra.alerts.outbox import DEAD, LONGEST_DELAY_S, MAX_AGE_S, Outbox
from infra.alerts.signature import DeliveryCheck
from infra.alerts.webhook import WebhookSink
from tests.infra.alerts.receiver import MINUTE_MS, Receiver, make_alert, receiving
from tests.infra.manual_clock import ManualClock
from validators.contracts.alerts import Alert, AlertState
from validators.contracts.errors import ModalgateError, Refused, Unavailable

START_MS = 1_700_000_000_000
SECRETS = (b"s" * 32,)


class Sink:
    """Takes what comes, unless it is told to raise."""

    name = "sink"

    def __init__(self) -> None:
        self.taken: list[Alert] = []
        self.asked = 0
        self.failure: ModalgateError | None = None

    def deliver(self, alert: Alert) -> None:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        self.taken.append(alert)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_MS * 1_000_000)


@pytest.fixture
def box(tmp_path: Path, clock: ManualClock) -> Outbox:
    return Outbox(tmp_path / "outbox", clock, seed=1)


FIRED = make_alert(START_MS)
ENDED = make_alert(START_MS + MINUTE_MS, AlertState.RESOLVED, started_ms=START_MS)


def test_what_was_put_is_sent_once_in_its_order(box: Outbox) -> None:
    sink = Sink()
    for _ in range(2):  # a crash after the first time puts it again
        box.put(FIRED, ["sink"])
    box.put(ENDED, ["sink"])
    (came,) = box.deliver([sink])
    assert sink.taken == [FIRED, ENDED]
    assert (came.sent, came.waiting) == (2, 0)
    assert box.deliver([sink])[0].sent == 0


def test_a_receiver_that_is_away_gets_it_later_and_is_asked_ever_less_often(
    box: Outbox, clock: ManualClock
) -> None:
    sink = Sink()
    sink.failure = Unavailable("away")
    box.put(FIRED, ["sink"])
    box.put(ENDED, ["sink"])
    for _ in range(24 * 60):  # a look a minute for a day
        box.deliver([sink])
        clock.advance(60)
    assert 10 < sink.asked < 24 * 3
    sink.failure = None
    clock.advance(LONGEST_DELAY_S)
    box.deliver([sink])
    assert sink.taken == [FIRED, ENDED]


def test_one_sink_does_not_wait_for_another(box: Outbox) -> None:
    away, there = Sink(), Sink()
    away.failure = Unavailable("away")
    there.name = "there"
    box.put(FIRED, ["sink", "there"])
    states = {item.sink: item for item in box.deliver([away, there])}
    assert (states["sink"].waiting, states["sink"].problem) == (1, "away")
    assert there.taken == [FIRED]


def test_what_is_refused_is_kept_aside_and_holds_nothing_up(box: Outbox, tmp_path: Path) -> None:
    sink = Sink()
    sink.failure = Refused("not like this")
    box.put(FIRED, ["sink"])
    (came,) = box.deliver([sink])
    assert (came.given_up, came.waiting) == (1, 0)
    assert len(list((tmp_path / "outbox" / "sink" / DEAD).iterdir())) == 1
    sink.failure = None
    box.put(ENDED, ["sink"])
    box.deliver([sink])
    assert sink.taken == [ENDED]


def test_what_nobody_took_for_a_week_is_given_up(box: Outbox, clock: ManualClock) -> None:
    sink = Sink()
    box.put(FIRED, ["sink"])
    clock.advance(MAX_AGE_S + 1)
    assert box.deliver([sink])[0].given_up == 1
    assert sink.taken == []


def test_a_clock_that_went_back_holds_nothing_up(box: Outbox, clock: ManualClock) -> None:
    sink = Sink()
    box.put(FIRED, ["sink"])
    clock.advance(-30 * 24 * 3600)
    box.deliver([sink])
    assert sink.taken == [FIRED]


def test_a_damaged_message_holds_nothing_up(box: Outbox, tmp_path: Path) -> None:
    sink = Sink()
    box.put(FIRED, ["sink"])
    (path,) = (tmp_path / "outbox" / "sink").glob("*.json")
    path.write_bytes(path.read_bytes()[:50])
    box.put(ENDED, ["sink"])
    assert box.deliver([sink])[0].given_up == 1
    assert sink.taken == [ENDED]


def test_waiting_messages_are_bounded(
    box: Outbox, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 5)
    for number in range(20):
        box.put(make_alert(START_MS + number), ["sink"])
    assert box.waiting("sink") == 5


def test_files_are_the_owner_s_alone(box: Outbox, tmp_path: Path) -> None:
    box.put(FIRED, ["sink"])
    folder = tmp_path / "outbox"
    assert stat.S_IMODE((folder / "sink").stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*.json")} == {0o600}


def test_a_webhook_gets_a_signed_document_again_until_it_takes_it(
    box: Outbox, clock: ManualClock
) -> None:
    with receiving(Receiver(status=500)) as receiver:
        sink, check = WebhookSink(receiver.url, SECRETS, clock), DeliveryCheck(SECRETS)
        box.put(FIRED, ["webhook"])
        box.deliver([sink])
        receiver.status = 202
        clock.advance(60)
        assert box.deliver([sink])[0].sent == 1
        now_s = clock.wall_ns() // 10**9
        accepted = [check.accept(headers, body, now_s) for headers, body in receiver.came]
        assert accepted == [True, False], "the second is known for the same message"
        document = json.loads(receiver.came[1][1])
        assert document["alert"]["labels"] == {"service": "shop"}
        assert document["id"] == FIRED.id
