"""What the watch knows, as metrics of the gateway: read from its state when Prometheus scrapes.

Labels are the service and at most MAX_FEATURES features, as `modality` and `feature`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from flows.drift_watch.places import read_state
from validators.contracts.errors import ModalgateError
from validators.contracts.verdict import Outcome
from validators.watch.state import MAX_FEATURES, FeatureState, WatchState

PREFIX = "modalgate_drift"


class DriftCollector(Collector):
    """Says nothing where no watch has looked yet, and that the state is unreadable where it is."""

    def __init__(self, service: str, path: Path) -> None:
        self._service = service
        self._path = path

    def collect(self) -> Iterable[Metric]:
        readable = GaugeMetricFamily(
            f"{PREFIX}_state_readable", "Whether the drift watch's state can be read.",
            labels=["service"],
        )  # fmt: skip
        if not self._path.exists():
            return
        try:
            state = read_state(self._path, self._service)
        except (ModalgateError, OSError):
            readable.add_metric([self._service], 0)
            yield readable
            return
        readable.add_metric([self._service], 1)
        yield readable
        yield from _of_service(state)
        yield from _of_features(state)

    def describe(self) -> Iterable[Metric]:
        """Names are known without a state."""
        return []


def _of_service(state: WatchState) -> Iterable[Metric]:
    gauges = {
        "alarm": ("Whether drift alarms now.", float(state.alarm.firing)),
        "alarm_start_timestamp_seconds": (
            "When the present alarm began, or 0.", (state.alarm.since_ms or 0) / 1e3
        ),
        "last_look_timestamp_seconds": ("When the watch looked last.", state.looked_ms / 1e3),
        "last_judged_timestamp_seconds": ("When a window was judged last.", state.judged_ms / 1e3),
        "last_recorded_timestamp_seconds": (
            "When the newest judged window ended.", state.recorded_ms / 1e3
        ),
        "waiting_rows": ("Recorded requests that wait to be judged.", float(state.waiting_rows)),
        "pending_alerts": ("Messages that are not in the outbox yet.", float(len(state.pending))),
    }  # fmt: skip
    for name, (text, value) in gauges.items():
        gauge = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=["service"])
        gauge.add_metric([state.service], value)
        yield gauge
    counters = {
        "windows_judged": ("Windows that were judged.", state.windows_judged),
        "windows_refused": ("Windows of other versions, not compared.", state.windows_refused),
        "windows_damaged": ("Windows that could not be opened.", state.windows_damaged),
        "alarms": ("Alarms that began.", state.alarms),
    }
    for name, (text, count) in counters.items():
        counter = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=["service"])
        counter.add_metric([state.service], count)
        yield counter
    outcome = GaugeMetricFamily(
        f"{PREFIX}_outcome", "1 for the outcome of the latest look.", labels=["service", "outcome"]
    )
    for item in Outcome:
        outcome.add_metric([state.service, item.value], float(item is state.outcome))
    yield outcome


def _of_features(state: WatchState) -> Iterable[Metric]:
    labels = ["service", "modality", "feature"]
    effect = GaugeMetricFamily(f"{PREFIX}_effect", "Distance from the reference.", labels=labels)
    p_value = GaugeMetricFamily(f"{PREFIX}_p_value", "Of no difference.", labels=labels)
    drifted = GaugeMetricFamily(f"{PREFIX}_drifted", "Whether the feature drifted.", labels=labels)
    for item in state.features[:MAX_FEATURES]:
        values = [state.service, *named(item)]
        effect.add_metric(values, item.effect)
        p_value.add_metric(values, item.p_value)
        drifted.add_metric(values, float(item.drifted))
    return [effect, p_value, drifted]


def named(item: FeatureState) -> tuple[str, str]:
    """A feature as modality and feature: `image.brightness`, `embedding.image`."""
    first, _, rest = item.name.partition(".")
    if first == "embedding" and rest:
        return rest, first
    return (first, rest) if rest else ("", first)
