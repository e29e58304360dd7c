"""What a release says of two versions by their answers, and the adapter it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from flows.home import Home
from flows.release.adapters import OpenPair, judge_pair
from flows.workspace import Workspace
from services.compatibility.adapters.applying import load_adapter_engine
from services.compatibility.adapters.register import find_adapters
from services.compatibility.compare import EncoderVersion
from tests.services.compatibility.small_pictures import as_png, network, pictures, version
from validators.compatibility.words import CompatibilitySettings
from validators.contracts.digest import digest_bytes
from validators.contracts.ports import RunningEngine
from validators.contracts.verdict import Outcome, Verdict

Array = npt.NDArray[Any]
SETTINGS = CompatibilitySettings(linf=10.0, catalogue_reencoded=True, stored_items=80)
TURN = np.linalg.qr(np.random.default_rng(5).standard_normal((24, 24)))[0]
ITEMS = pictures(80, seed=3)
OLD, NEW = digest_bytes(b"old"), digest_bytes(b"new")


@dataclass(frozen=True)
class OnBackend:
    """A function's engine that says which backend the adapter is to be built with."""

    inner: RunningEngine

    @property
    def manifest(self) -> Any:
        found = self.inner.manifest
        return replace(found, spec=replace(found.spec, backend="onnxruntime"))

    def run(self, feeds: Any) -> dict[str, Array]:
        return self.inner.run(feeds)

    def close(self) -> None:
        self.inner.close()


def on_backend(found: EncoderVersion) -> EncoderVersion:
    return EncoderVersion(found.contract, OnBackend(found.engine))


def pair(
    run: Callable[[Array], Array],
    wants: Callable[[Array], Array] = lambda x: x,
    count: int = len(ITEMS),
) -> OpenPair:
    old, new = version("1", network(0)), version("2", run, wants)
    return OpenPair(
        on_backend(old), on_backend(new), OLD, NEW, [as_png(item) for item in ITEMS[:count]]
    )


def judge(workspace: Workspace, versions: OpenPair) -> Verdict:
    items = [({"pixels": item}, {"pixels": item}) for item in ITEMS[: len(versions.raws)][:64]]
    return judge_pair(workspace, versions, items, SETTINGS)


def codes(verdict: Verdict) -> set[str]:
    return {item.code for item in verdict.findings}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(Home(tmp_path))


def turned(pixels: Array) -> Array:
    return np.asarray(network(0)(pixels) @ TURN)


@pytest.mark.heavy
def test_a_turned_space_leaves_a_registered_adapter_and_passes(workspace: Workspace) -> None:
    versions = pair(turned)
    verdict = judge(workspace, versions)
    (finding,) = [item for item in verdict.findings if item.code == "adapter-registered"]
    assert finding.outcome is Outcome.PASS and verdict.outcome <= Outcome.WARN
    assert not codes(verdict) & {"reindex", "adapter-needed"}
    (evidence,) = verdict.evidence
    assert evidence.name == "adapters-image.json" and workspace.store.contains(evidence.digest)
    assert dict(verdict.metrics)["features_adapter_kept_share_low"] > 0.8
    (record,) = find_adapters(workspace.store, workspace.verifier, OLD, NEW)
    assert record.engine_key[7:19] in finding.remedy
    work = workspace.home.folder("engines", "work")
    with load_adapter_engine(record, workspace.store, workspace.verifier, work) as adapter:
        new = turned(np.concatenate(ITEMS)).astype(np.float32)
        adapted = adapter(new, versions.versions[1].origin)
    old = network(0)(np.concatenate(ITEMS))
    cosines = (adapted * old).sum(1) / np.linalg.norm(old, axis=1)
    assert cosines.min() > 0.99
    again = judge(workspace, versions)  # nothing is fitted again
    assert again.evidence == verdict.evidence


def test_with_too_few_items_it_says_how_many_lack(workspace: Workspace) -> None:
    verdict = judge(workspace, pair(turned, count=30))
    (finding,) = [item for item in verdict.findings if item.code == "adapter-too-few-pairs"]
    assert finding.measured == 30 and "Bring 34 more items" in finding.remedy
    assert verdict.outcome is Outcome.WARN and verdict.evidence == ()


def test_a_version_that_is_fed_wrongly_blocks_and_gets_no_adapter(workspace: Workspace) -> None:
    verdict = judge(workspace, pair(network(0), lambda pixels: (pixels - 127) / 128))
    assert verdict.outcome is Outcome.FAIL
    (finding,) = [item for item in verdict.findings if item.code == "wrong-preprocessing"]
    assert "0 to 255" in str(finding.measured) and not finding.waivable
    assert find_adapters(workspace.store, workspace.verifier, OLD, NEW) == ()


def test_versions_that_agree_are_not_looked_at_further(workspace: Workspace) -> None:
    verdict = judge(workspace, pair(network(0)))
    assert verdict.outcome is Outcome.PASS and "inputs_tried" not in dict(verdict.metrics)
