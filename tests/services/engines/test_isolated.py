from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest

from services.children.errors import BuildCancelled, ChildCrashed, ChildTimedOut, ChildTooLarge
from services.children.guard import Limits
from services.engines.isolated import IsolatedEngine, open_isolated
from services.engines.load import load_opened
from services.engines.tensors import Arrays
from tests.services.engines.children import builders
from tests.services.engines.endless import ENDLESS_ABOVE, endless_engine
from validators.contracts.digest import canonical_json
from validators.contracts.engine import EngineManifest, EngineState
from validators.contracts.errors import BadInput, NotFound, Refused, Unavailable

Made = tuple[EngineManifest, Path]

ENDLESS = {"pixels": np.full((1, 3, 16, 16), ENDLESS_ABOVE + 1, np.float32)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return endless_engine(tmp_path_factory.mktemp("endless"))


@pytest.fixture(scope="module")
def shared(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IsolatedEngine]:
    engine = open_isolated(*made, tmp_path_factory.mktemp("child"))
    yield engine
    engine.close()


def _pixels(batch: int, seed: int = 1) -> Arrays:
    random = np.random.default_rng(seed)
    return {"pixels": random.uniform(-1, 1, (batch, 3, 16, 16)).astype(np.float32)}


def _open_files() -> int:
    return psutil.Process().num_fds()


def _is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_it_answers_what_the_engine_answers_in_process(
    made: Made, shared: IsolatedEngine, batch: int
) -> None:
    known = load_opened(*made)
    for seed in range(3):
        feeds = _pixels(batch, seed)
        expected, found = known.run(feeds), shared.run(feeds)
        assert list(found) == list(expected)
        for name, array in expected.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)
    known.close()
    assert shared.manifest == made[0]


def test_answers_are_the_callers_own(shared: IsolatedEngine) -> None:
    first = shared.run(_pixels(1))
    kept = first["features"].copy()
    shared.run(_pixels(1, seed=2))
    np.testing.assert_array_equal(first["features"], kept)
    first["features"][:] = 0


@pytest.mark.parametrize(
    "feeds",
    [
        {},
        {"pixels": np.zeros((1, 3, 16, 16))},
        {"pixels": np.zeros((1, 3, 16, 17), np.float32)},
        {"pixels": np.full((1, 3, 16, 16), np.nan, np.float32)},
        {"pixels": np.zeros((1, 3, 16, 16), object)},
        {"pixels": np.zeros((0, 3, 16, 16), np.float32)},
        {"pixels": np.array(1, np.float32)},
    ],
)
def test_bad_input_is_refused_as_in_process_and_the_child_goes_on(
    shared: IsolatedEngine, feeds: Arrays
) -> None:
    with pytest.raises(BadInput) as caught:
        shared.run(feeds)
    assert not isinstance(caught.value, ChildTooLarge)
    assert caught.value.remedy
    assert shared.run(_pixels(1))["logits"].shape == (1, 4)


def test_calls_from_several_threads_take_turns(made: Made, shared: IsolatedEngine) -> None:
    known = load_opened(*made)
    feeds = [_pixels(1 + seed % 4, seed) for seed in range(24)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(shared.run, feeds))
    for feed, answer in zip(feeds, answers, strict=True):
        np.testing.assert_array_equal(answer["features"], known.run(feed)["features"])
    known.close()


def test_a_graph_that_never_ends_is_stopped_at_the_calls_limit(made: Made, tmp_path: Path) -> None:
    engine = open_isolated(*made, tmp_path, subject="image 2", call_s=2)
    with pytest.raises(ChildTimedOut, match="within 2 s") as caught:
        engine.run(ENDLESS)
    assert "image 2" in caught.value.where
    assert not _is_running(engine.pid)
    with pytest.raises(Unavailable):
        engine.run(_pixels(1))
    engine.close()


def test_a_caller_who_cancels_does_not_wait_for_an_endless_graph(
    made: Made, tmp_path: Path
) -> None:
    asked: list[bool] = []
    engine = open_isolated(*made, tmp_path, cancel=lambda: bool(asked))
    asked.append(True)
    with pytest.raises(BuildCancelled):
        engine.run(ENDLESS)
    assert not _is_running(engine.pid)


def test_too_much_memory_ends_the_child(made: Made, tmp_path: Path) -> None:
    with pytest.raises(ChildTooLarge, match="over its limit of 8 MiB"):
        open_isolated(*made, tmp_path, limits=Limits(memory_bytes=8 * 1024**2))


def test_a_killed_child_is_reported_with_its_signal(made: Made, tmp_path: Path) -> None:
    engine = open_isolated(*made, tmp_path)
    os.kill(engine.pid, signal.SIGKILL)
    with pytest.raises(ChildCrashed, match="SIGKILL"):
        engine.run(_pixels(1))
    engine.close()


def test_closing_leaves_nothing_and_may_be_done_twice(made: Made, tmp_path: Path) -> None:
    before = _open_files()
    engine = open_isolated(*made, tmp_path)
    assert engine.pid in [child.pid for child in builders()]
    engine.close()
    engine.close()
    assert not psutil.pid_exists(engine.pid)
    assert _open_files() == before
    with pytest.raises(Unavailable, match="closed"):
        engine.run(_pixels(1))


@pytest.mark.parametrize(
    ("changes", "path", "error"),
    [
        ({"state": EngineState.BUILT}, None, Refused),
        ({"size_bytes": 7}, None, Refused),
        ({"canary_outputs": ()}, None, Refused),
        ({}, Path("absent"), NotFound),
    ],
)
def test_what_load_refuses_is_refused_here_and_no_process_is_left(
    made: Made, tmp_path: Path, changes: dict[str, object], path: Path | None,
    error: type[Exception],
) -> None:  # fmt: skip
    manifest = dataclasses.replace(made[0], **changes)  # type: ignore[arg-type]
    running = {child.pid for child in builders()}
    with pytest.raises(error):
        open_isolated(manifest, path or made[1], tmp_path)
    assert {child.pid for child in builders()} == running


_PARENT = """
import sys
from pathlib import Path
from services.engines.isolated import open_isolated
from tests.services.engines.test_isolated import ENDLESS
from validators.contracts.documents import load
from validators.contracts.engine import EngineManifest
manifest = load(EngineManifest, Path(sys.argv[1]).read_bytes())
engine = open_isolated(manifest, Path(sys.argv[2]), Path(sys.argv[3]))
print(engine.pid, flush=True)
engine.run(ENDLESS)
"""


def test_a_hanging_child_dies_with_its_parent(made: Made, tmp_path: Path) -> None:
    document = tmp_path / "manifest.json"
    document.write_bytes(canonical_json(made[0]))
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(document), str(made[1]), str(tmp_path)],
        stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    psutil.wait_procs([child], timeout=60)
    assert not _is_running(child.pid)
