"""Objects that nothing refers to go; what a reference leads to stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.retention import purge, reachable, sweep
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
