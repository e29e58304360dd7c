"""What the gateway counts, in Prometheus' terms, in a registry of its own.

Labels hold names of modalities, encoders, revisions and outcomes only: never anything a caller
wrote, so their number is bounded by what is deployed.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

_LATENCY_BUCKETS_S = (
    0.005, 0.01, 0.025, 0.05, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
"""The limits of the SLO classes (0.08, 0.3, 5) and the soft limit (0.25) are bounds of a bucket."""


_SHARE_BUCKETS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 0.9, 1.0)


class GatewayMetrics:
    """Counters, gauges and histograms of one gateway process."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "modalgate_requests_total",
            "Requests by the modalities they held, how they ended and the revision.",
            ("modalities", "outcome", "revision"),
            registry=self.registry,
        )
        self._latency = Histogram(
            "multimodal_endtoend_latency_seconds",
            "From arrival to the answer, of requests that were answered.",
            ("revision",),
            buckets=_LATENCY_BUCKETS_S,
            registry=self.registry,
        )
        self._engine = Histogram(
            "modalgate_engine_latency_seconds",
            "One engine call; of a decoder, all its steps.",
            ("encoder", "revision"),
            buckets=_LATENCY_BUCKETS_S,
            registry=self.registry,
        )
        self._refused = Counter(
            "modalgate_refused_total",
            "Work that was refused or dropped without running, by reason.",
            ("reason",),
            registry=self.registry,
        )
        self._degraded = Counter(
            "modalgate_degraded_total",
            "Answers that used less than was sent.",
            ("revision",),
            registry=self.registry,
        )
        self._padded = Histogram(
            "modalgate_padded_work_ratio",
            "Share of an engine call's work that was padding, by how its shape was met.",
            ("encoder", "revision", "way"),
            buckets=_SHARE_BUCKETS,
            registry=self.registry,
        )
        self._cut = Counter(
            "modalgate_cut_answers_total",
            "Engine calls whose input was cut, so that the answer is degraded.",
            ("encoder", "revision"),
            registry=self.registry,
        )
        self._swaps = Counter(
            "modalgate_engine_swaps_total",
            "Engines that were replaced while they served.",
            ("encoder", "revision"),
            registry=self.registry,
        )
        self._shape_requests = Counter(
            "modalgate_shape_requests_total",
            "Engines asked for, for shapes that no profile covers, by what became of it.",
            ("encoder", "outcome"),
            registry=self.registry,
        )
        self._recorded = Counter(
            "modalgate_recorded_requests_total",
            "Requests drawn for the drift windows, by what became of them.",
            ("outcome",),
            registry=self.registry,
        )
        self._queue_rows = self._gauge("modalgate_queue_rows", "Rows that wait for a worker.")
        self._queue_bytes = self._gauge("modalgate_queue_bytes", "Bytes that wait for a worker.")
        self._running = self._gauge("modalgate_engine_running", "Jobs that run in a worker.")

    def observe_request(
        self, modalities: str, outcome: str, revision: str, latency_s: float, *, degraded: bool
    ) -> None:
        """One request has ended. Only answered ones enter the latency histogram."""
        self._requests.labels(modalities, outcome, revision).inc()
        if outcome == "ok":
            self._latency.labels(revision).observe(latency_s)
        if degraded:
            self._degraded.labels(revision).inc()

    def observe_engine(self, encoder: str, revision: str, latency_s: float) -> None:
        self._engine.labels(encoder, revision).observe(latency_s)

    def observe_shape(
        self, encoder: str, revision: str, way: str, padded_share: float, *, cut: bool
    ) -> None:
        """How one engine call was run: inside a profile, padded into one, split or cut."""
        self._padded.labels(encoder, revision, way).observe(padded_share)
        if cut:
            self._cut.labels(encoder, revision).inc()

    def count_swap(self, encoder: str, revision: str) -> None:
        self._swaps.labels(encoder, revision).inc()

    def count_shape_request(self, encoder: str, outcome: str) -> None:
        """`outcome`: filed, known, dropped, beyond (too large), surplus (one shape too many)."""
        self._shape_requests.labels(encoder, outcome).inc()

    def count_recorded(self, outcome: str) -> None:
        """`outcome`: kept, passed (by chance), dropped (too busy), unmeasured, unwritten."""
        self._recorded.labels(outcome).inc()

    def observe_queue(self, rows: int, size_bytes: int, running: int) -> None:
        self._queue_rows.set(rows)
        self._queue_bytes.set(size_bytes)
        self._running.set(running)

    def count_refused(self, reason: str) -> None:
        self._refused.labels(reason).inc()

    def render(self) -> bytes:
        """The text exposition format."""
        return generate_latest(self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, registry=self.registry)
