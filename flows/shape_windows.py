"""What a gateway recorded of the shapes it was asked for, written down for the next release."""

from __future__ import annotations

import logging
from pathlib import Path

from infra.files import disk_faults, locked, make_private_folder, write_atomically
from services.engines.profiles.records import append_window
from services.gateway.revisions import Revisions
from validators.contracts.errors import ModalgateError

_log = logging.getLogger(__name__)


def flush_windows(revisions: Revisions, folder: Path) -> int:
    """Add a window to `folder/<encoder>.json` for each encoder that was asked; how many were added.

    The revision with most traffic comes last: where two differ in an encoder's dimensions, its
    shapes are the ones that stay. A window that cannot be written becomes part of the next one.
    """
    traffic = revisions.traffic
    ordered = sorted(revisions.all(), key=lambda served: traffic.share(served.revision.name))
    written = 0
    for served in ordered:
        for name, encoder in served.revision.encoders.items():
            window = encoder.engine.take_window()
            if window is None or not window.total:
                continue
            try:
                with disk_faults("the recorded shapes", str(folder), "Make room on the disk."):
                    make_private_folder(folder)
                    with locked(folder / "lock"):
                        path = folder / f"{name}.json"
                        before = path.read_bytes() if path.exists() else None
                        write_atomically(path, append_window(before, window))
                written += 1
            except ModalgateError as error:
                encoder.engine.give_back(window)
                _log.warning("shapes of %s were not written down: %s", name, error.what)
    return written
