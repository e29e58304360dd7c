"""What serving may record of live requests, as an asset of the bundle."""

from __future__ import annotations

from flows.release.run import Release
from validators.contracts.bundle import BundledAsset
from validators.contracts.dataset import Dataset
from validators.contracts.digest import canonical_json
from validators.watch.plan import ASSET, plan_of


def recording_asset(release: Release, clean: Dataset) -> BundledAsset:
    """The share that the pipeline file allows, and the slices that this data set has."""
    document = canonical_json(plan_of(clean, release.pipeline.gates.drift_record))
    return BundledAsset(ASSET, release.workspace.store.put(document), len(document))
