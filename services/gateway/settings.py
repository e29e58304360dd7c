"""The gateway's bounds and knobs, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.gateway.scheduler import QueueLimits

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Everything that a deployment may want to change, with safe defaults.

    `default_timeout_ms` None: a request without a timeout of its own gets the P99 of the SLO.
    `drain_grace_s`: how long requests are still taken after readiness went false, so that a
    balancer notices; `drain_idle_s`: how long idle connections are kept after that, since a request
    may be on its way; `drain_timeout_s`: how long calls in flight may take.
    """

    workers: int = 1
    queue: QueueLimits = field(default_factory=QueueLimits)
    max_body_bytes: int = 64 * MIB
    max_bodies_bytes: int = 512 * MIB  # all request bodies held at one time
    max_objects: int = 8  # of one modality in one request
    max_image_bytes: int = 4 * MIB
    max_text_characters: int = 20_000
    max_audio_s: float = 60.0
    max_metadata_entries: int = 64
    max_metadata_bytes: int = 16 * 1024
    max_timeout_ms: float = 60_000.0
    default_timeout_ms: float | None = None
    max_concurrent_calls: int = 128  # gRPC; each may hold a body
    drain_grace_s: float = 0.5
    drain_idle_s: float = 1.0
    drain_timeout_s: float = 30.0
    record: bool = False  # vectors and measures of a sample, as the bundle's plan allows
