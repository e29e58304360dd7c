"""What people are told of drift: alerts in words, with nothing in them that a caller wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from flows.drift_watch.judge import Look
from validators.contracts.alerts import Alert, AlertState
from validators.contracts.verdict import Outcome
from validators.watch.alarm import AlarmRule, AlarmState, Told

NAME = "ModalgateDrift"
MAX_NAMED = 6
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,79}")
HOLDS_FOR = 3
"""An alarm that is not told again for so many cooldowns holds no more: the watch is gone."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a service's alarm, and what it rests on."""

    service: str
    told: Told
    before: AlarmState
    after: AlarmState
    rule: AlarmRule
    drifted: Sequence[str] = ()  # by `drifted_in`, or names of features
    reason: str = ""  # of an end that no window brought


def make_alert(change: Change, now_ms: int) -> Alert:
    """The message that goes with a change."""
    ended = change.told is Told.ENDED
    since = (change.before if ended else change.after).since_ms
    return Alert(
        name=NAME,
        severity="warning",
        labels=(("service", change.service),),
        summary=_summary(change),
        remedy=f"Run: modalgate drift explain {change.service}",
        state=AlertState.RESOLVED if ended else AlertState.FIRING,
        started_ms=min(since if since is not None else now_ms, now_ms),
        told_ms=now_ms,
        until_ms=now_ms + HOLDS_FOR * change.rule.cooldown_ms,
    )


def drifted_in(look: Look) -> list[str]:
    """The features and facts that a look found wrong, by names of our own."""
    subjects = [
        f"{finding.subject} ({finding.code})" if _PLAIN.fullmatch(finding.subject) else finding.code
        for verdict in look.verdicts
        for finding in verdict.findings
        if finding.outcome is Outcome.FAIL
    ]
    return list(dict.fromkeys(subjects))


def _summary(change: Change) -> str:
    if change.told is Told.ENDED:
        why = f": {change.reason}" if change.reason else ""
        return f"Live traffic of {change.service} no longer drifts{why}."
    history, rule, drifted = change.after.history, change.rule, change.drifted
    count = sum(item is Outcome.FAIL for item in history)
    named = ", ".join(drifted[:MAX_NAMED])
    more = f" and {len(drifted) - MAX_NAMED} more" if len(drifted) > MAX_NAMED else ""
    drifts = "still drifts" if change.told is Told.GOES_ON else "drifts"
    return (
        f"Live traffic of {change.service} {drifts}: {count} of the last {len(history)} windows "
        f"(limit {rule.drifted} of {rule.windows}){': ' + named + more if named else ''}."
    )
