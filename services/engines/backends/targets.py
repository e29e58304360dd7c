"""Targets of backends that compile for the machine they run on."""

from __future__ import annotations

from collections.abc import Sequence

from services.engines.host import this_host
from validators.contracts.engine import HostIdentity
from validators.contracts.errors import Unsupported


def cpu_target(backend: str, names: Sequence[str]) -> HostIdentity:
    """This machine's CPU, which "host" stands for; a CPU backend compiles for nothing else."""
    if tuple(names) != ("host",):
        raise Unsupported(
            f"{backend} compiles for the machine it runs on, not for {', '.join(names)}",
            where=backend,
            remedy="Leave out targets, or write targets: [host].",
        )
    return this_host()
