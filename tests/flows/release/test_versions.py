from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

from flows.home import Home
from flows.release.adapters import OpenPair, judge_pair
from flows.release.versions import NamedEngine, VersionFailed, judge_failure, open_version
from flows.workspace import Workspace
from services.compatibility.compare import EncoderVersion
from services.engines.isolated import open_isolated
from services.engines.manifest import seal_manifest
from tests.services.engines.children import builders
from tests.services.engines.endless import ENDLESS_ABOVE, endless_engine
from tests.services.engines.models import IMAGE
from validators.compatibility.words import CompatibilitySettings
from validators.contracts.bundle import BundledEngine
from validators.contracts.digest import digest_bytes
from validators.contracts.engine import EngineManifest
from validators.contracts.errors import BadInput
from validators.contracts.verdict import Outcome

FEEDS = [
    ({"pixels": item[None]}, {"pixels": item[None]})
    for item in np.random.default_rng(1).uniform(-1, 1, (6, 3, 16, 16)).astype(np.float32)
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[EngineManifest, Path]:
    return endless_engine(tmp_path_factory.mktemp("endless"))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(Home(tmp_path))


@contextmanager
def both(
    workspace: Workspace, made: tuple[EngineManifest, Path]
) -> Iterator[tuple[EncoderVersion, EncoderVersion, list[psutil.Process]]]:
    """An old and a new version of one engine, and their processes."""
    manifest, path = made
    spec = manifest.spec
    engine = BundledEngine(
        spec.encoder, spec.backend, spec.target, spec.precision, manifest.state, True, spec.key,
        workspace.store.put_file(path),
        workspace.store.put(seal_manifest(manifest, workspace.signer)),
    )  # fmt: skip
    with ExitStack() as stack:
        running = {child.pid for child in builders()}
        old, new = (
            stack.enter_context(open_version(workspace, IMAGE, engine, side))
            for side in ("old", "new")
        )
        children = [child for child in builders() if child.pid not in running]
        yield old, new, sorted(children, key=lambda child: child.create_time())


def _judge(workspace: Workspace, old: EncoderVersion, new: EncoderVersion) -> Outcome:
    pair = OpenPair(old, new, digest_bytes(b"old"), digest_bytes(b"new"))
    return judge_pair(workspace, pair, FEEDS, CompatibilitySettings(stored_items=0)).outcome


def test_two_versions_in_processes_of_their_own_are_judged_and_leave_none(
    workspace: Workspace, made: tuple[EngineManifest, Path]
) -> None:
    with both(workspace, made) as (old, new, children):
        assert len(children) == 2
        assert _judge(workspace, old, new) is not Outcome.ERROR
        with pytest.raises(BadInput):
            new.engine.run({})
    assert not any(child.is_running() for child in children)


@pytest.mark.parametrize(("killed", "side"), [(0, "old"), (1, "new")])
def test_a_version_that_dies_is_named_by_an_error_of_the_gate(
    workspace: Workspace, made: tuple[EngineManifest, Path], killed: int, side: str
) -> None:
    with both(workspace, made) as (old, new, children):
        children[killed].kill()
        with pytest.raises(VersionFailed) as caught:
            _judge(workspace, old, new)
    verdict = judge_failure(caught.value)
    (finding,) = verdict.findings
    assert (verdict.outcome, finding.code) == (Outcome.ERROR, "version-failed")
    assert finding.subject == f"image {IMAGE.version} ({side})"
    assert "SIGKILL" in str(finding.measured)


def test_a_version_that_never_answers_is_named(
    made: tuple[EngineManifest, Path], tmp_path: Path
) -> None:
    engine = NamedEngine(open_isolated(*made, tmp_path, call_s=1), "image 2 (new)")
    with pytest.raises(VersionFailed, match="within 1 s") as caught:
        engine.run({"pixels": np.full((1, 3, 16, 16), ENDLESS_ABOVE + 1, np.float32)})
    assert caught.value.where == "image 2 (new)"
    engine.close()
