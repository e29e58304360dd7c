"""Revisions and their state, the same for the local target and for KServe."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from validators.contracts.digest import Digest


class DeploymentPhase(enum.Enum):
    ABSENT = "absent"
    STARTING = "starting"
    SERVING = "serving"
    CANARY = "canary"
    DEGRADED = "degraded"  # should serve, and something is not ready


@dataclass(frozen=True, slots=True)
class Revision:
    """One bundle to serve. `name` is the short digest, for people and routes."""

    service: str
    name: str
    bundle: Digest
    bundle_path: str  # the materialised folder (local) or the storage URI (KServe)


@dataclass(frozen=True, slots=True)
class RevisionStatus:
    name: str
    bundle: Digest
    ready: bool
    percent: int  # of traffic
    message: str = ""


@dataclass(frozen=True, slots=True)
class DeploymentStatus:
    service: str
    target: str
    phase: DeploymentPhase
    stable: str | None  # revision names
    canary: str | None
    canary_percent: int
    revisions: tuple[RevisionStatus, ...]
    rest_url: str | None = None
    grpc_address: str | None = None
    pid: int | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class RevisionStats:
    """Counters since the revision came up, for the rollout's decision.

    `latency_ms` is a bounded sample of recent end-to-end latencies, newest last.
    """

    name: str
    requests: int
    errors: int
    degraded: int
    latency_ms: tuple[float, ...]
