"""Where a watch keeps what it knows, below `watch/<service>/` of the state folder."""

from __future__ import annotations

from pathlib import Path

from infra.files import disk_faults, make_private_folder, write_atomically
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import Refused
from validators.watch.state import STATE_FORMAT, WatchState

STATE_FILE = "state.json"
DAMAGED = ".damaged"


def read_state(path: Path, service: str) -> WatchState:
    """What the last look left; a new state where there was none.

    Raises:
        Refused: it is damaged, or of another version.
    """
    try:
        state = load(WatchState, path.read_bytes(), where=path.name)
    except FileNotFoundError:
        return WatchState(STATE_FORMAT, service)
    if (state.format, state.service) != (STATE_FORMAT, service):
        raise Refused("the watch's state is of another version or service", where=path.name)
    return state


def recover_state(path: Path, service: str) -> tuple[WatchState, str]:
    """As `read_state`; a state that cannot be read is put aside, and the watch begins anew.

    Returns: the state, and what there is to say about it.
    """
    try:
        return read_state(path, service), ""
    except Refused as error:
        path.replace(path.with_name(path.name + DAMAGED))
        return WatchState(STATE_FORMAT, service), f"the watch began anew: {error.what}"


def write_state(path: Path, state: WatchState) -> None:
    """Durable on return. Raises Unavailable: nothing changed."""
    with disk_faults("the watch's state", str(path), "Make room on the disk."):
        make_private_folder(path.parent)
        write_atomically(path, canonical_json(state))
