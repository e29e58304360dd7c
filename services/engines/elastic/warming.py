"""Runs an engine in before it serves, so that no request pays for what a first run costs."""

from __future__ import annotations

from services.engines.cases import make_cases
from validators.contracts.ports import RunningEngine


def warm(engine: RunningEngine) -> None:
    """Run every corner of every profile (minimum, optimum, maximum) once.

    Raises:
        What the engine raises: one that fails at a corner must not serve.
    """
    manifest = engine.manifest
    for case in make_cases(manifest.inputs, manifest.spec.profiles, between=0):
        engine.run(case.feeds)
