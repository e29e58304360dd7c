"""Judged windows in the object store: the documents, never the windows themselves.

What was recorded of live requests stays on this machine, sealed, and for a time only; what was
found about it is evidence and is kept. `drift/<service>/<window>` names the document; at most
MAX_LOOKS of a service.
"""

from __future__ import annotations

from dataclasses import replace

from flows.drift_watch.judge import Look
from flows.locks import shared
from flows.workspace import Workspace
from validators.contracts.digest import Digest, canonical_json, hex_of
from validators.contracts.documents import load
from validators.contracts.errors import NotFound
from validators.watch.state import MAX_LOOKS, Judged, WatchState

EVIDENCE = "drift-watch.json"


def keep_look(workspace: Workspace, state: WatchState, look: Look) -> WatchState:
    """The document in the store, behind a reference; the oldest ones go. Doing it twice is once."""
    store, document = workspace.store, canonical_json(look)
    name = _reference(look.service, look.window)
    with shared(workspace.home.lock("store")):  # nobody sweeps between the two
        digest, seen = store.put(document), store.reference(name)
        if seen != digest:
            store.set_reference(name, digest, expected=seen)
    workspace.write_evidence(look.service, EVIDENCE, document)
    made = Judged(look.window, digest, look.at_ms, look.outcome)
    kept = [item for item in state.judged if item.window != look.window]
    kept.append(made)
    for old in kept[:-MAX_LOOKS]:
        store.delete_reference(_reference(look.service, old.window))
    return replace(state, judged=tuple(kept[-MAX_LOOKS:]))


def look_of(workspace: Workspace, service: str, window: Digest) -> Look:
    """The document of a judged window. Raises NotFound."""
    digest = workspace.store.reference(_reference(service, window))
    if digest is None:
        raise NotFound(
            "no such window was judged", where=f"{service} {window}",
            remedy=f"List them: modalgate drift explain {service}",
        )  # fmt: skip
    return load(Look, workspace.store.get(digest), where=digest)


def _reference(service: str, window: Digest) -> str:
    return f"drift/{service}/{hex_of(window)}"
