"""The parts of the JSON answers that several verbs share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flows.release.values import EngineBuild
from validators.contracts.verdict import Verdict


def verdict_rows(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    """`verdicts` of an answer: gate, outcome, findings, metrics."""
    return [
        {
            "gate": verdict.gate,
            "outcome": verdict.outcome,
            "findings": verdict.findings,
            "metrics": dict(verdict.metrics),
        }
        for verdict in verdicts
    ]


def engine_rows(builds: Iterable[EngineBuild]) -> list[dict[str, Any]]:
    """`engines` of an answer; `cached` where the key had been built before."""
    return [
        {
            "key": build.engine.key,
            "encoder": build.engine.encoder,
            "backend": build.engine.backend,
            "target": build.engine.target.name,
            "precision": build.engine.precision,
            "state": build.engine.state,
            "cached": build.cached,
        }
        for build in builds
    ]
