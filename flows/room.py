"""Room on the disk of the state folder: work that would fill it does not begin."""

from __future__ import annotations

import shutil

from flows.home import Home
from validators.contracts.errors import DiskFull

MINIMUM_FREE_BYTES = 256 * 2**20


def has_room(home: Home) -> bool:
    """Whether as much is free as a release or a build takes at least."""
    return _free_bytes(home) >= MINIMUM_FREE_BYTES


def require_room(home: Home, what: str) -> None:
    """Refuse `what` (a release, a build) before it starts.

    Raises:
        DiskFull: less than MINIMUM_FREE_BYTES is free.
    """
    free_bytes = _free_bytes(home)
    if free_bytes < MINIMUM_FREE_BYTES:
        room = f"{MINIMUM_FREE_BYTES // 2**20} MiB at least"
        raise DiskFull(
            f"{free_bytes / 2**20:.0f} MiB are free, and {what} takes {room}",
            where=str(home.folder()),
            remedy="Free some disk space, or set MODALGATE_HOME to another disk.",
        )


def _free_bytes(home: Home) -> int:
    return shutil.disk_usage(home.folder()).free
