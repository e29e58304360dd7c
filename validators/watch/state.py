"""What a watch knows of a service between two looks: one document, written whole or not at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from validators.contracts.alerts import Alert
from validators.contracts.digest import Digest
from validators.contracts.verdict import Outcome, Verdict
from validators.watch.alarm import AlarmState

STATE_FORMAT = 1
MAX_FEATURES = 64
MAX_LOOKS = 200
_ABSENCE = "absence."  # how many rows lack a column is not judged of live traffic


@dataclass(frozen=True, slots=True)
class Taken:
    """A recorded window that was judged, but for the columns that wait for more samples.

    Or that was refused, as one of a version that was not live.
    """

    window: Digest
    waiting: tuple[str, ...] = ()
    refused: bool = False


def known_to_next(taken: Iterable[Taken], own: Collection[Digest]) -> tuple[Taken, ...]:
    """What the watch of the next live version need not look at again, `own` being its windows.

    What was judged stays judged, and waits for no more samples: another reference is in force. What
    was refused stays refused, but for the windows that the next version recorded as a canary.
    """
    return tuple(
        Taken(item.window, refused=item.refused)
        for item in taken
        if not (item.refused and item.window in own)
    )


@dataclass(frozen=True, slots=True)
class FeatureState:
    """How far a feature is from its reference, by the latest window that it was judged in."""

    name: str
    effect: float
    p_value: float
    drifted: bool
    at_ms: int


@dataclass(frozen=True, slots=True)
class Judged:
    """A window that was judged, and the document that says how."""

    window: Digest
    document: Digest
    at_ms: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class WatchState:
    """`pending` are messages that were decided and are not in the outbox yet."""

    format: int
    service: str
    champion: Digest | None = None
    alarm: AlarmState = field(default_factory=AlarmState)
    outcome: Outcome = Outcome.INCONCLUSIVE  # of the latest look
    message: str = ""
    looked_ms: int = 0
    judged_ms: int = 0
    recorded_ms: int = 0  # when the newest window that was judged ends
    waiting_rows: int = 0
    windows_judged: int = 0
    windows_refused: int = 0
    windows_damaged: int = 0
    alarms: int = 0
    taken: tuple[Taken, ...] = ()
    features: tuple[FeatureState, ...] = ()
    judged: tuple[Judged, ...] = ()
    pending: tuple[Alert, ...] = ()


def with_features(state: WatchState, verdict: Verdict, at_ms: int) -> WatchState:
    """The state with the figures of a verdict; at most MAX_FEATURES, the furthest kept."""
    metrics = dict(verdict.metrics)
    drifted = {f.subject for f in verdict.findings if f.outcome is Outcome.FAIL}
    found = {item.name: item for item in state.features}
    for name, effect in metrics.items():
        feature = name.removeprefix("effect.")
        if feature != name and not feature.startswith(_ABSENCE):
            p_value = metrics.get(f"p.{feature}", 1.0)
            found[feature] = FeatureState(feature, effect, p_value, feature in drifted, at_ms)
    kept = sorted(found.values(), key=lambda item: (not item.drifted, -item.effect, item.name))
    return replace(state, features=tuple(sorted(kept[:MAX_FEATURES], key=lambda item: item.name)))
