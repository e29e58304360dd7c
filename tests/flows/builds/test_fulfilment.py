"""A request becomes an engine that is built, verified, and lies where the gateway takes it from."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows import room
from flows.build_engines import require_built, run_build_engines
from flows.builds.drain import drain, reopen_failed
from flows.builds.losses import reopen_lost
from flows.builds.records import builds_of
from flows.home import Home
from flows.locks import exclusive
from flows.release.places import place_of, remember_place
from flows.retention import sweep
from flows.workspace import Workspace
from infra.builds.folder import MAX_TRIES
from services.engines.load import load_engine
from services.engines.manifest import open_manifest
from services.engines.profiles.extension import covers_sizes
from tests.flows.builds.shop import CONTRACT, ENTRY, PROFILES, SERVICE, Shop, open_shop
from validators.contracts.builds import BuildState
from validators.contracts.digest import digest_bytes, hex_of, short
from validators.contracts.engine import EngineState, Precision, Tolerance
from validators.contracts.errors import Blocked, Conflict, DiskFull, Unavailable
from validators.contracts.pipeline import AutoProfiles, GateSettings
from validators.contracts.verdict import Outcome


def placed(shop: Shop) -> Path | None:
    found = shop.workspace.deployments.replaced_engine(SERVICE, short(shop.bundle.digest), "image")
    return None if found is None else found.engine


def test_a_request_is_built_verified_recorded_and_placed(shop: Shop) -> None:
    queue, workspace = shop.workspace.builds, shop.workspace
    queue.file(shop.request(6))
    (ended,) = drain(workspace)
    assert (ended.state, ended.live, ended.message) == (BuildState.DONE, False, "")
    ((name, record),) = builds_of(workspace.store, SERVICE)
    assert name == f"builds/{SERVICE}/{hex_of(shop.request(6).key)}"
    assert record.verdict.outcome is Outcome.PASS
    found = workspace.deployments.replaced_engine(SERVICE, short(shop.bundle.digest), "image")
    assert found is not None
    manifest = open_manifest(found.manifest.read_bytes(), workspace.verifier)
    assert manifest.state is EngineState.VERIFIED
    assert manifest.source == shop.bundle.encoder("image").onnx
    assert manifest.key == record.key != shop.engine.key
    assert covers_sizes(CONTRACT.inputs, manifest.spec.profiles, {"batch": 6})
    assert manifest.spec.profiles[: len(PROFILES)] == PROFILES
    load_engine(found.manifest.read_bytes(), found.engine, verifier=workspace.verifier).close()


def test_a_later_request_keeps_what_an_earlier_one_added(shop: Shop) -> None:
    for batch in (6, 9):
        shop.workspace.builds.file(shop.request(batch))
    assert [ended.state for ended in drain(shop.workspace)] == [BuildState.DONE] * 2
    found = shop.workspace.deployments.replaced_engine(SERVICE, short(shop.bundle.digest), "image")
    assert found is not None
    profiles = open_manifest(found.manifest.read_bytes(), shop.workspace.verifier).spec.profiles
    assert len(profiles) == len(PROFILES) + 2
    assert all(covers_sizes(CONTRACT.inputs, profiles, {"batch": n}) for n in (1, 4, 6, 9))


def test_fulfilling_again_builds_nothing_again(shop: Shop) -> None:
    queue = shop.workspace.builds
    queue.file(shop.request())
    drain(shop.workspace)
    engines = list(shop.workspace.store.references("engines/"))
    queue.forget(shop.request())
    queue.file(shop.request())
    assert [ended.state for ended in drain(shop.workspace)] == [BuildState.DONE]
    assert list(shop.workspace.store.references("engines/")) == engines


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"encoder": "sound"}, "no encoder 'sound'"),
        ({"bundle": digest_bytes(b"another")}, "no object"),
        ({"sizes": (("frames", 3),)}, "dimensions"),
        ({"sizes": (("batch", 1 << 19),)}, "MiB"),
    ],
)
def test_a_request_that_nothing_can_fulfil_is_failed_with_the_reason(
    shop: Shop, changes: dict[str, Any], reason: str
) -> None:
    request = shop.request(**changes)
    shop.workspace.builds.file(request)
    (ended,) = drain(shop.workspace)
    assert ended.state is BuildState.FAILED
    assert reason in ended.message
    assert shop.workspace.builds.builds()[0].message == ended.message
    assert placed(shop) is None


def test_a_shape_outside_the_declared_bounds_is_failed_with_them(tmp_path: Path) -> None:
    bounded = open_shop(tmp_path / "home", replace(ENTRY, auto=AutoProfiles()))
    bounded.workspace.builds.file(bounded.request(6))
    (ended,) = drain(bounded.workspace)
    assert ended.state is BuildState.FAILED
    assert "batch 6 is outside 1 to 4, which the pipeline declares" in ended.message


def test_what_parity_does_not_let_pass_is_failed_and_not_installed(tmp_path: Path) -> None:
    unattainable = ((Precision.FP32, Tolerance(max_rel=1e-3, cosine_min=1.5)),)
    strict = open_shop(tmp_path / "home", gates=GateSettings(parity=unattainable))
    strict.workspace.builds.file(strict.request())
    (ended,) = drain(strict.workspace)
    assert ended.state is BuildState.FAILED
    assert "the parity gate said FAIL" in ended.message and "cosine" in ended.message
    assert ended.blocked and placed(strict) is None
    ((_, record),) = builds_of(strict.workspace.store)
    assert (record.verdict.outcome, record.engine) == (Outcome.FAIL, None)


def test_a_store_that_is_down_leaves_the_request_waiting_for_another_try(shop: Shop) -> None:
    for batch in (6, 7):
        shop.workspace.builds.file(shop.request(batch))
    assert shop.workspace.store.contains(shop.bundle.digest)
    objects = shop.workspace.home.root / "objects" / "objects"
    objects.rename(objects.with_name("away"))
    ended = drain(shop.workspace)
    assert [item.state for item in ended] == [BuildState.WAITING] * 2
    assert [build.tries for build in shop.workspace.builds.builds()] == [1, 1]
    objects.with_name("away").rename(objects)
    assert [item.state for item in drain(shop.workspace)] == [BuildState.DONE] * 2


def test_the_last_try_is_reported_as_what_it_was_and_may_be_allowed_again(shop: Shop) -> None:
    shop.workspace.builds.file(shop.request())
    assert shop.workspace.store.contains(shop.bundle.digest)
    objects = shop.workspace.home.root / "objects" / "objects"
    objects.rename(objects.with_name("away"))
    ended = [drain(shop.workspace)[0].state for _ in range(MAX_TRIES)]
    assert ended == [BuildState.WAITING] * (MAX_TRIES - 1) + [BuildState.FAILED]
    objects.with_name("away").rename(objects)
    assert drain(shop.workspace) == []
    assert reopen_failed(shop.workspace) == 1
    assert [item.state for item in drain(shop.workspace)] == [BuildState.DONE]
    assert reopen_failed(shop.workspace) == 0


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([], None),
        ([("a", "done", False)], None),
        ([("a", "waiting", False), ("a", "done", False)], None),
        ([("a", "done", False), ("b", "waiting", False)], Unavailable),
        ([("a", "failed", False), ("b", "failed", True)], Blocked),
    ],
)
def test_builds_that_end_without_an_engine_end_the_verb_so(
    rows: list[tuple[str, str, bool]], error: type[Exception] | None
) -> None:
    document: dict[str, Any] = {
        "builds": [
            {"key": key, "state": state, "blocked": blocked, "service": "s", "encoder": "e"}
            for key, state, blocked in rows
        ]
    }
    with pytest.raises(error) if error else contextlib.nullcontext():
        assert require_built(document) is document


def test_a_build_that_somebody_ends_is_no_try(shop: Shop) -> None:
    shop.workspace.builds.file(shop.request())
    looks = iter([False] * 3 + [True] * 1000)
    (ended,) = drain(shop.workspace, lambda: next(looks))
    assert ended.state is BuildState.WAITING
    assert [(b.state, b.tries) for b in shop.workspace.builds.builds()] == [(BuildState.WAITING, 0)]


def test_one_drain_at_a_time(shop: Shop) -> None:
    with (
        exclusive(shop.workspace.home.lock("builds"), "a build"),
        pytest.raises(Conflict, match="a background build"),
    ):
        drain(shop.workspace)


def test_the_flow_answers_as_a_document_and_starts_no_orchestrator(shop: Shop) -> None:
    shop.workspace.builds.file(shop.request())
    document = run_build_engines()
    assert [row["state"] for row in document["builds"]] == ["done"]
    assert run_build_engines() == {"builds": []}
    assert not list((shop.workspace.home.root / "prefect").glob("*.db"))


def tiny_shop(disk: Path, released_home: tuple[Path, Shop]) -> Shop:
    """The released service on a disk of 2 MiB, with a request that waits."""
    home, made = released_home
    shutil.copytree(home, disk / "home")
    shop = Shop(Workspace(Home(disk / "home")), made.bundle)
    shop.workspace.builds.file(shop.request())
    return shop


def fill(disk: Path, left_kib: int) -> Path:
    """The file that leaves so much of the disk free."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as stream, pytest.raises(OSError):
        while True:
            stream.write(bytes(4096))
    with filler.open("r+b") as stream:
        stream.truncate(filler.stat().st_size - left_kib * 1024)
    return filler


@pytest.mark.parametrize("left_kib", [0, 24, 96])
def test_a_request_outlives_a_full_disk_however_often_it_is_looked_at(
    tiny_disk: Path,
    released_home: tuple[Path, Shop],
    left_kib: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(room, "MINIMUM_FREE_BYTES", 128 * 1024)
    full = tiny_shop(tiny_disk, released_home)
    filler = fill(tiny_disk, left_kib)
    for _ in range(MAX_TRIES + 1):
        with contextlib.suppress(DiskFull):
            (ended,) = drain(full.workspace)
            assert "MiB are free, and a build takes" in ended.message
    (build,) = full.workspace.builds.builds()
    assert (build.state, build.tries) == (BuildState.WAITING, 0)
    filler.unlink()
    assert [item.state for item in drain(full.workspace)] == [BuildState.DONE]


def test_a_build_that_dies_while_the_disk_is_full_is_no_try(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = iter([room.MINIMUM_FREE_BYTES])  # enough at first, none when it is looked at again
    monkeypatch.setattr(room, "_free_bytes", lambda home: next(free, 0))
    shop.workspace.builds.file(shop.request())
    objects = shop.workspace.home.root / "objects" / "objects"
    assert shop.workspace.store.contains(shop.bundle.digest)
    objects.rename(objects.with_name("away"))
    assert [item.state for item in drain(shop.workspace)] == [BuildState.WAITING]
    assert [build.tries for build in shop.workspace.builds.builds()] == [0]
    objects.with_name("away").rename(objects)


@pytest.mark.parametrize("left_kib", [0, 24, 96])
def test_a_full_disk_leaves_the_request_waiting_and_nothing_half_written(
    tiny_disk: Path,
    released_home: tuple[Path, Shop],
    left_kib: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(room, "MINIMUM_FREE_BYTES", 0)  # so that it begins, and fills the disk
    full = tiny_shop(tiny_disk, released_home)
    filler = fill(tiny_disk, left_kib)
    with contextlib.suppress(Unavailable):
        assert drain(full.workspace)[0].state is BuildState.WAITING
    assert [build.state for build in full.workspace.builds.builds()] == [BuildState.WAITING]
    assert sweep(full.workspace.store, dry_run=True).removed == ()
    for digest in full.workspace.store.objects():
        full.workspace.store.get(digest)
    assert [path for path in tiny_disk.rglob("*") if path.suffix == ".part"] == []
    assert [path for path in tiny_disk.rglob("scratch-*") if path.is_dir()] == []
    assert placed(full) is None
    filler.unlink()
    assert [item.state for item in drain(full.workspace)] == [BuildState.DONE]


def test_the_place_of_a_release_is_found_again(shop: Shop, tmp_path: Path) -> None:
    remember_place(shop.workspace, shop.bundle.digest, tmp_path)
    assert place_of(shop.workspace, shop.bundle.digest) == tmp_path
    unknown = digest_bytes(b"unknown")
    assert place_of(shop.workspace, unknown) == shop.workspace.home.root


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize(("part", "damage"), [("engine", flip), ("manifest", Path.unlink)])
def test_an_engine_that_was_damaged_since_is_asked_for_and_placed_again(
    shop: Shop, damage: Callable[[Path], None], part: str
) -> None:
    shop.workspace.deployments.apply(shop.revision)
    for batch in (6, 9):
        shop.workspace.builds.file(shop.request(batch))
    drain(shop.workspace)
    assert reopen_lost(shop.workspace) == 0
    shop.workspace.deployments.stop(SERVICE)
    found = shop.workspace.deployments.replaced_engine(SERVICE, short(shop.bundle.digest), "image")
    assert found is not None
    intact = (found.manifest.read_bytes(), found.engine.read_bytes())
    damage(getattr(found, part))
    assert reopen_lost(shop.workspace) == 2
    states = {build.state for build in shop.workspace.builds.builds()}
    assert states == {BuildState.WAITING}
    shop.workspace.deployments.apply(shop.revision)
    assert [item.live for item in drain(shop.workspace)] == [True, True]
    again = shop.workspace.deployments.replaced_engine(SERVICE, short(shop.bundle.digest), "image")
    assert again is not None
    assert part == "manifest" or intact == (again.manifest.read_bytes(), again.engine.read_bytes())
    assert reopen_lost(shop.workspace) == 0


def test_a_damaged_replacement_is_passed_over(shop: Shop) -> None:
    shop.workspace.builds.file(shop.request(6))
    drain(shop.workspace)
    found = shop.workspace.deployments.replaced_engine(SERVICE, short(shop.bundle.digest), "image")
    assert found is not None
    found.manifest.write_bytes(b"{}")
    shop.workspace.builds.file(shop.request(9))
    (ended,) = drain(shop.workspace)
    assert ended.state is BuildState.DONE
