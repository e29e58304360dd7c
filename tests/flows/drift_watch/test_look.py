"""Looks at live traffic: what is judged, what waits, what is told, and what survives."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from flows.drift_watch import look as module
from flows.drift_watch.documents import look_of
from flows.drift_watch.judge import Look
from flows.drift_watch.look import Looked
from flows.drift_watch.places import read_state
from flows.drift_watch.report import add_report
from flows.drift_watch.watched import Watched
from flows.locks import exclusive
from infra.alerts.events import event_document
from infra.alerts.outbox import Outbox
from infra.workspaces.evidently import ReportWorkspace
from tests.flows.drift_watch.shop import Shop
from tests.infra.manual_clock import ManualClock
from tests.services.gateway.toy import SERVICE
from validators.contracts.digest import digest_bytes, short
from validators.contracts.errors import Conflict, DiskFull, Unavailable
from validators.contracts.origin import VectorOrigin
from validators.contracts.verdict import Outcome
from validators.watch.alarm import Told

ALERTS = {"windows": 3, "drifted": 2, "cooldown_s": 3600.0}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path, **ALERTS)


def codes(looked: Looked) -> set[str]:
    return {finding.code for finding in looked.findings}


def test_traffic_like_training_s_passes_and_is_judged_once(shop: Shop) -> None:
    recorded = [shop.record(shop.draw(60)) for _ in range(3)]
    looked = shop.look()
    (made,) = looked.looks
    assert made.outcome is Outcome.PASS, looked.findings
    assert (made.rows, made.recorded) == (180, tuple(recorded))
    assert made.columns == ("embedding.image", "image.brightness")
    assert look_of(shop.workspace, SERVICE, made.window) == made
    assert (looked.state.windows_judged, looked.state.waiting_rows) == (1, 0)
    again = shop.look()
    assert again.looks == ()
    assert again.state.outcome is Outcome.INCONCLUSIVE
    assert shop.sink.told == []


def test_too_few_requests_wait_and_are_judged_with_those_that_come(shop: Shop) -> None:
    for _ in range(2):
        shop.record(shop.draw(12))
        looked = shop.look()
        assert looked.looks == ()
        assert looked.state.outcome is Outcome.INCONCLUSIVE
    assert looked.state.waiting_rows == 24
    shop.record(shop.draw(12))
    (made,) = shop.look().looks
    assert made.rows == 36


def test_what_few_requests_have_gathers_while_the_rest_is_judged(shop: Shop) -> None:
    judged: list[Look] = []
    for _ in range(4):
        shop.record(shop.draw(40, audio=10))
        judged += shop.look().looks
    assert ["audio.rms_db" in made.columns for made in judged] == [False, False, True, False]
    assert judged[2].rows == 40 + 2 * 10, "the rows with speech of the two windows before"
    assert all(made.outcome is Outcome.PASS for made in judged)


def test_a_shift_alarms_once_is_told_again_and_ends(shop: Shop) -> None:
    told: list[Told] = []
    for shift, hours in [(2, 0.25), (2, 0.25), (2, 0.25), (2, 1), (0, 0.25), (0, 0.25)]:
        shop.record(shop.draw(60, shift=shift))
        told += shop.look(60 * hours).told
    assert told == [Told.BEGAN, Told.GOES_ON, Told.ENDED]
    assert shop.sink.states == ["firing", "firing", "resolved"]
    first, again, ended = shop.sink.told
    assert len({alert.fingerprint for alert in shop.sink.told}) == 1
    assert first.started_ms == again.started_ms == ended.started_ms
    assert "2 of the last 2 windows" in first.summary
    assert "embedding.image" in first.summary
    assert "still drifts" in again.summary
    state = read_state(shop.watched().state_file, SERVICE)
    assert (state.alarms, state.alarm.firing) == (1, False)


def test_no_traffic_for_a_day_is_inconclusive_and_keeps_an_alarm(shop: Shop) -> None:
    for _ in range(2):
        shop.record(shop.draw(60, shift=2))
        shop.look()
    for _ in range(24 * 4):
        looked = shop.look()
    assert looked.state.outcome is Outcome.INCONCLUSIVE
    assert looked.state.message == "nothing was recorded since the last look"
    assert looked.state.alarm.firing
    assert shop.sink.states == ["firing"] * (1 + 24)


def test_a_window_of_another_encoder_version_is_refused_with_both_origins(shop: Shop) -> None:
    other = VectorOrigin(digest_bytes(b"other encoder"), digest_bytes(b"other engine"))
    bundle = digest_bytes(b"another bundle")
    shop.record(shop.draw(60, shift=5, origin=other), bundle)
    looked = shop.look()
    assert looked.looks == ()
    (finding,) = looked.findings
    assert finding.code == "other-version"
    assert other.describe() in str(finding.measured)
    assert shop.origin.describe() in str(finding.limit)
    assert looked.state.windows_refused == 1
    assert shop.look().findings == (), "it is told once"


def test_vectors_of_another_engine_in_the_live_version_s_window_are_refused(shop: Shop) -> None:
    other = VectorOrigin(shop.origin.encoder, digest_bytes(b"never compared"))
    shop.record(shop.draw(60, shift=5, origin=other))
    looked = shop.look()
    (finding,) = looked.findings
    assert finding.code == "window-unusable"
    assert other.describe() in str(finding.measured)
    assert shop.origin.describe() in str(finding.measured)


def test_a_new_version_ends_the_alarm_of_the_one_before(shop: Shop) -> None:
    for _ in range(2):
        shop.record(shop.draw(60, shift=2))
        shop.look()
    shop.record(shop.draw(60, shift=2))  # recorded before the change, judged after it
    shop.release("2", certificate=digest_bytes(b"another release"))
    looked = shop.look()
    assert looked.told == (Told.ENDED,)
    assert looked.looks == ()
    assert codes(looked) == {"other-version"}
    assert looked.state.windows_refused == 1, "what was judged before is not told again"
    assert "another version serves" in shop.sink.told[-1].summary
    shop.record(shop.draw(60))
    (made,) = shop.look().looks
    assert (made.champion, made.outcome) == (shop.bundle.digest, Outcome.PASS)


def test_what_a_canary_recorded_is_judged_once_it_is_live(shop: Shop) -> None:
    first = shop.version
    shop.record(shop.draw(60))
    shop.look()
    second = shop.release("2", certificate=digest_bytes(b"another release"))
    shop.record(shop.draw(60))
    shop.version = first
    assert codes(shop.look()) == {"other-version"}
    shop.version = second
    (made,) = shop.look().looks
    assert made.champion == second.bundle
    shop.version = first
    back = shop.look()
    assert (back.looks, back.findings) == ((), ()), "each was judged once"


def test_a_modality_that_does_not_come_at_all_warns_and_alarms_nobody(shop: Shop) -> None:
    shop.record(shop.draw(20, some=()))
    shop.record(shop.draw(20, some=("text",)))
    looked = shop.look()
    (made,) = looked.looks
    assert made.outcome is Outcome.WARN
    found = {(item.code, item.subject) for item in looked.findings}
    assert found == {("modality-absent", "audio")}, "text came in one of two windows"
    assert looked.state.alarm.history == (Outcome.WARN,)
    assert shop.sink.told == []


def test_how_many_requests_lack_a_modality_is_neither_judged_nor_shown(shop: Shop) -> None:
    window = shop.draw(60)
    image = window.embeddings["image"]
    half = replace(image, vectors=image.vectors[:30], rows=image.rows[:30])
    shop.record(replace(window, embeddings={"image": half}))
    (made,) = shop.look().looks
    assert made.outcome is Outcome.PASS
    names = [name for name, _ in made.verdicts[0].metrics]
    assert "effect.embedding.image" in names
    assert not [name for name in names if "absence." in name]


def test_channels_that_training_never_saw_fail(shop: Shop) -> None:
    shop.record(shop.draw(60, tags="(other)"))
    (made,) = shop.look().looks
    assert made.outcome is Outcome.FAIL
    assert "unseen-channels" in {item.code for item in made.verdicts[1].findings}


def test_alerts_hold_names_of_our_own_only(shop: Shop) -> None:
    for _ in range(2):
        shop.record(shop.draw(60, tags="Ada Lovelace, 10 Downing Street"))
        shop.look()
    (alert,) = shop.sink.told
    assert "Ada" not in alert.summary
    assert "unseen-channels" in alert.summary


@pytest.mark.parametrize("damage", [lambda data: data[:100], lambda data: b"", lambda d: d + b"x"])
def test_a_damaged_window_is_put_aside_and_the_others_are_judged(
    shop: Shop, damage: Callable[[bytes], bytes]
) -> None:
    shop.record(shop.draw(60))
    folder = shop.workspace.home.folder("windows", SERVICE)
    (path,) = folder.rglob("*.window")
    path.write_bytes(damage(path.read_bytes()))
    shop.record(shop.draw(60))
    looked = shop.look()
    assert [made.rows for made in looked.looks] == [60]
    assert codes(looked) == {"window-unusable"}
    assert looked.state.windows_damaged == 1


def test_a_window_that_was_copied_counts_once(shop: Shop) -> None:
    window = shop.draw(40)
    for _ in range(3):
        shop.record(window)
    (made,) = shop.look().looks
    assert made.rows == 40


def test_two_watchers_at_once_are_one(shop: Shop) -> None:
    shop.record(shop.draw(60))
    with (
        exclusive(shop.workspace.home.lock(f"watch-{SERVICE}"), "a watch"),
        pytest.raises(Conflict),
    ):
        shop.look()
    assert len(shop.look().looks) == 1


def test_a_clock_that_goes_back_loses_nothing(shop: Shop) -> None:
    shop.record(shop.draw(60, shift=2))
    shop.look()
    shop.clock.advance(-3 * 24 * 3600)
    shop.record(shop.draw(60, shift=2))
    looked = shop.look()
    assert looked.told == (Told.BEGAN,)
    assert shop.sink.told[0].started_ms <= shop.sink.told[0].told_ms


def test_a_damaged_state_is_put_aside_and_said(shop: Shop) -> None:
    shop.record(shop.draw(60))
    shop.look()
    path = shop.watched().state_file
    path.write_bytes(path.read_bytes()[:200])
    looked = shop.look()
    assert "began anew" in looked.state.message
    assert path.with_name("state.json.damaged").exists()
    assert [made.rows for made in looked.looks] == [60], "what lies there is judged again"


def test_a_receiver_that_is_away_changes_no_verdict_and_gets_it_later(shop: Shop) -> None:
    shop.sink.failure = Unavailable("away")
    for _ in range(2):
        shop.record(shop.draw(60, shift=2))
        looked = shop.look()
    assert looked.delivered[0].waiting == 1
    assert looked.looks[0].outcome is Outcome.FAIL
    shop.sink.failure = None
    shop.look()
    assert shop.sink.states == ["firing"]


class Killed(BaseException):
    """The process is gone: no handler of errors runs after it."""


def deadly(calls: int, original: Callable[..., object], after: bool) -> Callable[..., object]:
    """`original`, which ends the process before or after its call of that number."""
    left = [calls]

    def call(*arguments: object, **named: object) -> object:
        left[0] -= 1
        if left[0] == 0 and not after:
            raise Killed
        result = original(*arguments, **named)
        if left[0] == 0:
            raise Killed
        return result

    return call


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("place", [
    (module, "keep_look", 1), (module, "write_state", 1), (module, "write_state", 2),
    (module, "write_state", 3), (Outbox, "put", 1), (Outbox, "deliver", 1),
])  # fmt: skip
def test_a_look_killed_anywhere_loses_no_alert_and_makes_no_second(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, place: tuple[object, str, int], after: bool
) -> None:
    shop.record(shop.draw(60, shift=2))
    shop.look()
    shop.record(shop.draw(60, shift=2))
    owner, name, calls = place
    monkeypatch.setattr(owner, name, deadly(calls, getattr(owner, name), after))
    with pytest.raises(Killed):
        shop.look()
    monkeypatch.undo()
    for _ in range(2):
        shop.look(1)
    assert shop.sink.states == ["firing"]
    state = read_state(shop.watched().state_file, SERVICE)
    assert (state.windows_judged, state.alarms, state.pending) == (2, 1, ())


def test_a_full_disk_ends_the_look_and_the_next_one_goes_on(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, state: object) -> None:
        raise DiskFull("no room")

    for _ in range(2):
        shop.record(shop.draw(60, shift=2))
    monkeypatch.setattr(module, "write_state", full)
    with pytest.raises(DiskFull):
        shop.look()
    monkeypatch.undo()
    assert len(shop.look().looks) == 1


def test_windows_of_a_service_that_is_forgotten_are_no_hindrance(shop: Shop) -> None:
    shop.record(shop.draw(60))
    shutil.rmtree(shop.workspace.home.folder("windows"))
    assert shop.look().looks == ()


def test_what_a_version_cannot_tell_is_in_no_document_of_the_store(shop: Shop) -> None:
    """Live windows stay on this machine: the store gets verdicts about them only."""
    digest = shop.record(shop.draw(60))
    (made,) = shop.look().looks
    store = shop.workspace.store
    assert not store.contains(digest)
    assert not store.contains(made.window)
    assert short(made.window) != short(made.reference)


def test_a_report_that_fails_is_the_report_s_own_trouble(shop: Shop) -> None:
    shop.record(shop.draw(60))
    seen: list[str] = []

    def report(watched: Watched, made: object, window: object) -> None:
        seen.append(watched.service)

    shop.clock.advance(60)
    module.look(shop.watched(), report)
    assert seen == [SERVICE]


def test_a_judged_window_has_an_evidently_report_without_its_rows(shop: Shop) -> None:
    window = shop.draw(60)
    shop.record(window)
    shop.clock.advance(60)
    (made,) = module.look(shop.watched(), add_report).looks
    home = shop.workspace.home
    reports = ReportWorkspace(home.folder("workspace"), home.folder("watch", "reports"))
    assert reports.reports(SERVICE) == [made.window]
    stored = b"".join(p.read_bytes() for p in home.folder("workspace").rglob("*") if p.is_file())
    assert b"image.brightness" in stored
    values = window.descriptors["image.brightness"].values
    assert not [value for value in values if repr(float(value)).encode() in stored]


def test_an_alarm_that_begins_is_no_reminder_to_the_orchestrator(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time goes on during a look: the first message is told when the alarm began all the same."""
    wall_ns = type(shop.clock).wall_ns

    def passing(clock: ManualClock) -> int:
        clock.advance(0.003)
        return wall_ns(clock)

    monkeypatch.setattr(type(shop.clock), "wall_ns", passing)
    for _ in range(2):
        shop.record(shop.draw(60, shift=2))
        shop.look()
    shop.look(120)
    reminders = [cast(dict[str, str], event_document(a)["resource"]) for a in shop.sink.told]
    assert [item["modalgate.reminder"] for item in reminders] == ["false", "true"]
