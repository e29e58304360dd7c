"""What the local target's documents pin: read by whoever may not remove what they name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from infra.local_target.desired import DesiredState, PinnedRevision
from validators.contracts.documents import load


@dataclass(frozen=True, slots=True)
class Pin:
    """A revision that a service's document names. `role`: "stable", "canary" or "previous"."""

    service: str
    role: str
    revision: PinnedRevision


def read_desired(root: Path, service: str) -> DesiredState:
    """The desired state of a service; nothing is desired of one that was never deployed."""
    path = root / service / "deployment.json"
    try:
        return load(DesiredState, path.read_bytes(), where=str(path))
    except FileNotFoundError:
        return DesiredState(service)


def read_pins(root: Path) -> tuple[Pin, ...]:
    """Every revision that serves, stands by or is kept to go back to, of all services.

    Raises:
        Refused: a document that does not hold: then nobody knows what it pins.
    """
    found = []
    for path in sorted(root.glob("*/deployment.json")):
        state = read_desired(root, path.parent.name)
        roles = (("stable", state.stable), ("canary", state.canary), ("previous", state.previous))
        found += [
            Pin(state.service, role, revision) for role, revision in roles if revision is not None
        ]
    return tuple(found)
