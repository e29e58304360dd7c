"""Objects that nothing refers to go; what a reference leads to stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.home import Home
from flows.locks import shared
from flows.retention import purge, reachable, sweep, tidied
from flows.workspace import Workspace
from infra.objects.folder import FolderStore
from validators.contracts.digest import canonical_json


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "objects")


def test_what_a_document_names_is_kept_and_the_rest_is_removed(store: FolderStore) -> None:
    blob = store.put(b"\x00engine")
    inner = store.put(canonical_json({"engine": blob}))
    outer = store.put(canonical_json([inner]))
    orphan = store.put(b"nobody's")
    store.set_reference("bundles/a", outer, expected=None)
    swept = sweep(store)
    assert swept.removed == (orphan,)
    assert set(store.objects()) == {blob, inner, outer} == reachable(store)


def test_a_dry_run_removes_nothing(store: FolderStore) -> None:
    orphan = store.put(b"nobody's")
    assert sweep(store, dry_run=True).removed == (orphan,)
    assert store.contains(orphan)


def test_a_reference_to_a_lost_object_does_not_stop_the_sweep(store: FolderStore) -> None:
    lost = store.put(canonical_json({"a": 1}))
    store.set_reference("steps/x", lost, expected=None)
    store.delete(lost)
    assert sweep(store).removed == ()


def test_purging_the_quarantine_leaves_nothing(store: FolderStore) -> None:
    store.set_reference("raw/x", store.put(b"raw"), expected=None)
    store.put(b"raw too")
    assert purge(store) == 2
    assert list(store.objects()) == [] == list(store.references())


def test_a_release_that_ends_leaves_nothing_unreachable(tmp_path: Path) -> None:
    workspace = Workspace(Home(tmp_path / "home"))
    lost = workspace.store.put(b"of a killed release")
    with pytest.raises(RuntimeError), tidied(workspace):
        assert workspace.store.contains(lost)
        kept = workspace.store.put(b"of this one")
        workspace.store.set_reference("steps/x", kept, expected=None)
        raise RuntimeError("it failed")
    assert list(workspace.store.objects()) == [kept]


def test_nothing_is_swept_while_another_release_writes(tmp_path: Path) -> None:
    workspace = Workspace(Home(tmp_path / "home"))
    with shared(workspace.home.lock("store")):
        with tidied(workspace):
            half = workspace.store.put(b"not yet referred to")
        assert workspace.store.contains(half)
