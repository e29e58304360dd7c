"""Encoders that one side has and the other has not: by name, before anything is measured."""

from __future__ import annotations

from validators.contracts.verdict import Finding, Outcome

GATE = "compatibility"


def lost_encoder(name: str, version: str) -> Finding:
    """An encoder of the old side that the new one has not: no answer of its may be compared."""
    return Finding(
        GATE, "encoder-lost", name, Outcome.FAIL, "absent", f"version {version}",
        "Keep the encoder under its name; waive this where it goes on purpose.",
    )  # fmt: skip


def new_encoder(name: str, version: str) -> Finding:
    """An encoder of the new side that replaces nothing."""
    return Finding(
        GATE, "no-predecessor", name, Outcome.WARN, f"version {version}", "an earlier version",
        "Look at it by itself: there is nothing to compare it with.",
    )  # fmt: skip
