"""One look at one service, from the recorded windows to the people who are told.

The state is written before anything is told, with the messages that follow from it; they go into
the outbox, and only then out of the state. A look that is killed anywhere leaves a state that the
next one goes on from: no window is judged twice into the alarm, no message is lost, and one that
goes out twice has one id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from flows.drift_watch.documents import keep_look
from flows.drift_watch.gather import MAX_FILES, Gathered, expired, gather
from flows.drift_watch.judge import Look, judge
from flows.drift_watch.places import recover_state, write_state
from flows.drift_watch.telling import Change, drifted_in, make_alert
from flows.drift_watch.watched import Watched
from flows.locks import exclusive
from infra.alerts.outbox import Delivered
from validators.contracts.digest import Digest
from validators.contracts.verdict import Finding, Outcome
from validators.drift.window import DriftWindow
from validators.watch.alarm import AlarmState, Told, judged, looked, replaced
from validators.watch.ready import ready_columns, samples_of
from validators.watch.state import Taken, WatchState, known_to_next, with_features

MAX_ROUNDS = 8
"""Of one look: more windows than these wait for the next one."""

Report = Callable[[Watched, Look, DriftWindow], None]
"""Renders a judged window for people; what it cannot do changes no verdict."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of a look."""

    state: WatchState
    looks: tuple[Look, ...] = ()
    findings: tuple[Finding, ...] = ()
    delivered: tuple[Delivered, ...] = ()
    told: tuple[Told, ...] = ()


def look(watched: Watched, report: Report = lambda watched, look, window: None) -> Looked:
    """Judge what was recorded since the last look, and tell whom it concerns.

    Raises:
        Conflict: another watch is looking at this service.
        Unavailable: the state cannot be written; the next look begins where this one did.
    """
    lock = watched.workspace.home.lock(f"watch-{watched.service}")
    with exclusive(lock, f"a drift watch of {watched.service}"):
        return _Look(watched, report).run()


class _Look:
    """One look under way. `state` is what the disk holds, or is about to."""

    def __init__(self, watched: Watched, report: Report) -> None:
        self._watched, self._report = watched, report
        self._now_ms = watched.now_ms  # one time a look: what begins in it is told at that time
        self._state, self._recovered = recover_state(watched.state_file, watched.service)
        self._told: list[Told] = []
        self._findings: list[Finding] = []
        self._looks: list[Look] = []

    def run(self) -> Looked:
        watched = self._watched
        sinks = watched.sinks
        self._send([sink.name for sink in sinks])  # what a killed look had decided
        self._follow_champion()
        for _ in range(MAX_ROUNDS):
            if not self._round():
                break
        self._remind()
        watched.windows.retain()
        self._forget_gone()
        self._save()
        self._send([sink.name for sink in sinks])
        delivered = watched.outbox.deliver(sinks)
        return Looked(
            self._state, tuple(self._looks), tuple(self._findings), tuple(delivered),
            tuple(self._told),
        )  # fmt: skip

    def _follow_champion(self) -> None:
        """Another version has another reference: what was seen of the last one says nothing."""
        state, bundle = self._state, self._watched.version.bundle
        if state.champion == bundle:
            return
        alarm, told = replaced(state.alarm, self._now_ms)
        before = state.alarm
        own = {item.window for item in self._watched.windows.entries() if item.bundle == bundle}
        taken = known_to_next(state.taken, own)
        self._state = replace(state, champion=bundle, alarm=alarm, taken=taken, features=())
        self._tell(told, before, [], "another version serves")

    def _round(self) -> bool:
        """Judge one window; whether there may be another."""
        watched, state = self._watched, self._state
        found = gather(watched.windows, watched.bundle, state.taken, watched.reference)
        self._findings += found.findings
        for entry in found.damaged:
            watched.windows.put_aside(entry)
        state = replace(
            state,
            windows_refused=state.windows_refused + len(found.refused),
            windows_damaged=state.windows_damaged + len(found.damaged),
            taken=(*state.taken, *(Taken(window, refused=True) for window in found.refused)),
        )
        minimum = watched.pipeline.gates.drift_minimum_samples
        known = frozenset(samples_of(watched.reference))
        columns = ready_columns(found.waiting, minimum, known)
        if not columns:
            self._state = self._waits(state, found, minimum)
            return False
        self._state = self._judge(state, found, columns)
        return len(found.fresh) + len(found.refused) + len(found.damaged) >= MAX_FILES

    def _judge(self, state: WatchState, found: Gathered, columns: frozenset[str]) -> WatchState:
        watched, window = self._watched, found.joined(columns)
        made = judge(watched, window, found.whole(), tuple(found.parts))
        self._looks.append(made)
        self._findings += [item for verdict in made.verdicts for item in verdict.findings]
        state = keep_look(watched.workspace, state, made)
        alarm, told = judged(state.alarm, made.outcome, watched.rule, self._now_ms)
        before = state.alarm
        state = replace(
            with_features(state, made.verdicts[0], made.at_ms),
            alarm=alarm,
            outcome=made.outcome,
            message="",
            judged_ms=made.at_ms,
            recorded_ms=made.until_ms,
            waiting_rows=0,
            windows_judged=state.windows_judged + 1,
            taken=_merged(state.taken, found.taken(columns, samples_of(watched.reference))),
        )
        self._state = state
        self._tell(told, before, drifted_in(made))
        self._save()
        self._report(watched, made, window)
        return self._state

    def _waits(self, state: WatchState, found: Gathered, minimum: int) -> WatchState:
        """Too little to decide anything: it waits, and is counted with what comes."""
        if self._looks:  # this look has decided something
            return replace(state, waiting_rows=found.rows)
        message = f"{found.rows} recorded requests wait for {minimum} of any kind"
        return replace(
            state,
            outcome=Outcome.INCONCLUSIVE,
            message=message if found.rows else "nothing was recorded since the last look",
            waiting_rows=found.rows,
        )

    def _remind(self) -> None:
        watched, before = self._watched, self._state.alarm
        alarm, told = looked(before, watched.rule, self._now_ms)
        self._state = replace(self._state, alarm=alarm, looked_ms=self._now_ms)
        drifted = [item.name for item in self._state.features if item.drifted]
        self._tell(told, before, drifted)

    def _tell(
        self, told: Told | None, before: AlarmState, drifted: list[str], reason: str = ""
    ) -> None:
        """Put the message beside the state that it follows from."""
        if told is None:
            return
        watched, state = self._watched, self._state
        change = Change(watched.service, told, before, state.alarm, watched.rule, drifted, reason)
        alert = make_alert(change, self._now_ms)
        began = told is Told.BEGAN
        self._state = replace(state, pending=(*state.pending, alert), alarms=state.alarms + began)
        self._told.append(told)

    def _forget_gone(self) -> None:
        """Windows that retention removed need not be remembered."""
        there = {entry.window for entry in self._watched.windows.entries()}
        taken = tuple(item for item in self._state.taken if item.window in there)
        gone = {item for item in self._state.taken if item.window not in there}
        self._findings += expired(gone)
        self._state = replace(self._state, taken=taken)
        if self._recovered:
            self._state = replace(self._state, message=self._recovered)

    def _save(self) -> None:
        write_state(self._watched.state_file, self._state)

    def _send(self, sinks: list[str]) -> None:
        """Pending messages into the outbox; out of the state once they are there."""
        if not self._state.pending:
            return
        for alert in self._state.pending:
            self._watched.outbox.put(alert, sinks)
        self._state = replace(self._state, pending=())
        self._save()


def _merged(known: tuple[Taken, ...], more: list[Taken]) -> tuple[Taken, ...]:
    found: dict[Digest, Taken] = {item.window: item for item in known}
    found.update((item.window, item) for item in more)
    return tuple(found.values())
