"""Removes what retention allows: references first, objects last, so that a crash hurts nobody.

A reference that is gone while its objects stay is a gap that the next run closes; an object that
is gone while a reference names it would be a damaged store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flows.builds.records import builds_of
from flows.inventory import BUILT, VERIFIED, engine_references, holders, live_bundles
from flows.workspace import Workspace
from infra.objects.folder import FolderStore
from validators.contracts.builds import BuildState
from validators.contracts.digest import Digest, canonical_json, short
from validators.contracts.documents import load
from validators.contracts.errors import Conflict, NotFound, Refused
from validators.retention import Pruning, plan_pruning

MARKS = "retention/unreferenced"
_ORDER = ("builds/", VERIFIED, BUILT)
"""Records first, then verdicts, then builds: what is left at any moment is a state that a release
leaves behind as well."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Since when references are held by nothing, where the store does not know their age."""

    since_ms: Mapping[str, int] = field(default_factory=dict)


def plan(workspace: Workspace, grace_ms: int) -> Pruning:
    """What may go now, and what waits for the end of its grace. Changes nothing.

    Raises:
        Refused, Unavailable: what is in use cannot be told.
    """
    live = live_bundles(workspace)
    references = engine_references(workspace)
    for name, build in builds_of(workspace.store):
        if build.engine is not None or build.request.bundle not in live:
            references[name] = build.key  # a verdict of what is deployed stays for people
    return plan_pruning(
        references,
        holders(workspace),
        since_ms=_since(workspace, references),
        now_ms=_now_ms(workspace),
        grace_ms=grace_ms,
    )


def carry_out(workspace: Workspace, planned: Pruning, grace_ms: int) -> None:
    """Remove the references of a plan, and what this machine keeps of revisions that are gone."""
    _drop_replacements(workspace, grace_ms)
    _forget_requests(workspace, grace_ms)
    for prefix in _ORDER:
        for name in planned.remove:
            if name.startswith(prefix):
                workspace.store.delete_reference(name)
    if not isinstance(workspace.store, FolderStore):
        _write_marks(workspace, Marks(planned.since_ms))


def _drop_replacements(workspace: Workspace, grace_ms: int) -> None:
    """Engines beside bundles that nothing would start any more."""
    kept = {short(bundle) for bundle in live_bundles(workspace)}
    older_than_ns = (_now_ms(workspace) - grace_ms) * 10**6
    pins = workspace.deployments.pins()
    for service in sorted({pin.service for pin in pins}):
        names = {pin.revision.name for pin in pins if pin.service == service}
        workspace.deployments.keep_engines(service, kept | names, older_than_ns)


def _forget_requests(workspace: Workspace, grace_ms: int) -> None:
    """Settled requests of bundles that are not deployed any more."""
    live, now_ms = live_bundles(workspace), _now_ms(workspace)
    for build in workspace.builds.builds():
        settled = build.state in (BuildState.DONE, BuildState.FAILED)
        if settled and build.request.bundle not in live and now_ms - build.filed_ms >= grace_ms:
            workspace.builds.forget(build.request)


def _since(workspace: Workspace, references: Mapping[str, Digest]) -> Mapping[str, int]:
    """Wall times from the store itself, or else from what the last run wrote down."""
    store = workspace.store
    if not isinstance(store, FolderStore):
        return _read_marks(workspace).since_ms
    set_ns = {name: store.reference_set_ns(name) for name in references}
    return {name: ns // 10**6 for name, ns in set_ns.items() if ns is not None}


def _read_marks(workspace: Workspace) -> Marks:
    digest = workspace.store.reference(MARKS)
    try:
        return Marks() if digest is None else load(Marks, workspace.store.get(digest), where=MARKS)
    except (NotFound, Refused):  # without it, every grace starts anew
        return Marks()


def _write_marks(workspace: Workspace, marks: Marks) -> None:
    store = workspace.store
    seen, digest = store.reference(MARKS), store.put(canonical_json(marks))
    if seen == digest:
        return
    try:
        store.set_reference(MARKS, digest, expected=seen)
    except Conflict:  # another machine prunes too: its marks are as good
        return


def _now_ms(workspace: Workspace) -> int:
    return workspace.clock.wall_ns() // 10**6
