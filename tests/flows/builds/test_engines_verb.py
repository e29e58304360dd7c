"""`modalgate engines` on a real store: what is there, whether it holds, what may go."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.builds.drain import drain
from flows.cli.main import build
from flows.inspection import inspect_all
from flows.inventory import choose_engine, stored_engines
from flows.locks import shared
from flows.pruning import carry_out, plan
from flows.release.register import CHAMPION
from flows.retain import run_retention
from flows.retention import sweep
from services.compatibility.adapters.register import register_adapters
from services.engines import inspection
from services.engines.backends.catalogue import backend
from services.engines.specs import specify
from tests.flows.builds.shop import BACKEND, CONTRACT, PROFILES, SERVICE, Shop
from tests.infra.manual_clock import ManualClock
from validators.compatibility.adapters import AdapterKind, AdapterMeasurement, AdapterRecord
from validators.compatibility.estimates import share_of
from validators.contracts.builds import BuildState
from validators.contracts.digest import Digest, hex_of, short
from validators.contracts.engine import Precision, ShapeProfile
from validators.contracts.errors import BadInput, Blocked, Conflict, NotFound, Refused, Undecided
from validators.contracts.origin import VectorOrigin
from validators.contracts.ports import ObjectStore
from validators.contracts.verdict import Outcome
from validators.retention import Use

HOUR_MS = 3_600_000


def register(shop: Shop, *aliases: str) -> str:
    registry = shop.workspace.registry
    version = registry.register(SERVICE, shop.bundle.digest, evidence={}, tags={}).version
    for alias in aliases:
        registry.move_alias(SERVICE, alias, version, expected=None, actor="a", reason="a test")
    return version


def uses(shop: Shop) -> dict[Digest, Use]:
    return {item.key: item.use for item in stored_engines(shop.workspace)}


def loose_engine(shop: Shop) -> Digest:
    """An engine that an abandoned release left behind."""
    onnx, profile = shop.bundle.encoder("image").onnx, PROFILES[0].ranges[0]
    smaller = ShapeProfile((dataclasses.replace(profile, maximum=(2, 3, 16, 16)),))
    spec = specify(CONTRACT, onnx, BACKEND, Precision.FP32, [smaller])
    return shop.workspace.workshop.obtain(spec, onnx, CONTRACT).manifest.key


def object_path(shop: Shop, digest: Digest) -> Path:
    name = hex_of(digest)
    return shop.workspace.home.root / "objects" / "objects" / name[:2] / name


def test_an_engine_is_listed_with_the_strongest_use_of_it(shop: Shop) -> None:
    assert uses(shop) == {shop.engine.key: Use.RELEASED}
    number = register(shop)
    assert uses(shop) == {shop.engine.key: Use.REGISTERED}
    shop.workspace.registry.move_alias(
        SERVICE, CHAMPION, number, expected=None, actor="a", reason="a test"
    )
    (engine,) = stored_engines(shop.workspace)
    assert engine.use is Use.LIVE
    assert f"{SERVICE} {number}" in engine.used_by


def test_an_engine_is_chosen_by_the_beginning_of_its_key(shop: Shop) -> None:
    key = shop.engine.key
    assert choose_engine(shop.workspace, short(key)).key == key
    assert choose_engine(shop.workspace, key[:20]).key == key
    for wrong in ("", "zz"):
        with pytest.raises(NotFound):
            choose_engine(shop.workspace, wrong)


def test_an_intact_engine_passes_and_one_that_was_never_verified_warns(shop: Shop) -> None:
    document = inspect_all(shop.workspace, stored_engines(shop.workspace))
    assert [row["outcome"] for row in document["engines"]] == [Outcome.PASS]
    loose_engine(shop)
    document = inspect_all(shop.workspace, stored_engines(shop.workspace))
    assert sorted(row["outcome"].value for row in document["engines"]) == ["PASS", "WARN"]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink, lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("part", ["engine", "manifest"])
def test_a_damaged_engine_is_found(shop: Shop, damage: Any, part: str) -> None:
    path = object_path(shop, getattr(shop.engine, part))
    path.chmod(0o600)
    damage(path)
    with pytest.raises(Blocked) as stopped:
        inspect_all(shop.workspace, stored_engines(shop.workspace))
    rows = stopped.value.attachment["engines"]
    assert [row["outcome"] for row in rows] == [Outcome.FAIL]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("used", "remedy"), [(True, "Release again"), (False, "engines prune")])
def test_what_to_do_about_a_damaged_engine_depends_on_its_use(
    shop: Shop, used: bool, remedy: str
) -> None:
    key = shop.engine.key if used else loose_engine(shop)
    manifest = choose_engine(shop.workspace, key).manifest
    assert manifest is not None
    path = object_path(shop, manifest.engine)
    path.chmod(0o600)
    flip(path)
    with pytest.raises(Blocked) as stopped:
        inspect_all(shop.workspace, [choose_engine(shop.workspace, key)])
    (row,) = stopped.value.attachment["engines"]  # type: ignore[misc]
    assert {remedy in item.remedy for item in row["findings"]} == {True}


def test_an_engine_that_another_version_built_is_not_decided(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = dataclasses.replace(backend(BACKEND).probe(), version="99.0")

    class Later:
        def probe(self) -> Any:
            return later

    monkeypatch.setattr(inspection, "backend", lambda name: Later())
    with pytest.raises(Undecided):
        inspect_all(shop.workspace, stored_engines(shop.workspace))


def test_nothing_to_verify_is_nothing_wrong(shop: Shop) -> None:
    assert inspect_all(shop.workspace, []) == {"engines": [], "verdicts": []}


def test_what_nothing_refers_to_goes_after_its_grace_with_its_objects(shop: Shop) -> None:
    loose = loose_engine(shop)
    early = run_retention(24.0, dry_run=False, alone=False)
    assert early["removed"] == () and len(early["waiting"]) == 1
    dry = run_retention(0.0, dry_run=True, alone=False)
    assert dry["removed"] == (f"engines/{hex_of(loose)}",)
    assert dry["objects_removed"] > 0
    assert loose in uses(shop)
    done = run_retention(0.0, dry_run=False, alone=False)
    assert done["objects_removed"] == dry["objects_removed"]
    assert set(uses(shop)) == {shop.engine.key}
    inspect_all(shop.workspace, stored_engines(shop.workspace))
    assert run_retention(0.0, dry_run=False, alone=False)["removed"] == ()


def test_the_engine_of_a_registered_adapter_stays(shop: Shop) -> None:
    adapter, store = loose_engine(shop), shop.workspace.store
    old, new = (VectorOrigin(store.put(name), adapter) for name in (b"old", b"new"))
    all_of_them = share_of(20, 20)
    measured = AdapterMeasurement(
        AdapterKind.PROCRUSTES, 64, 20, 10, *[all_of_them] * 5, share_of(0, 20), all_of_them, 0.01,
        16, "",
    )  # fmt: skip
    record = AdapterRecord(
        "image", "features", old, new, 4, 4, measured, (), adapter, adapter, adapter, adapter
    )
    register_adapters(store, shop.workspace.signer, [record])
    assert run_retention(0.0, dry_run=False, alone=False)["removed"] == ()
    assert uses(shop)[adapter] is Use.REGISTERED


def test_a_crash_between_references_and_objects_is_finished_by_the_next_run(shop: Shop) -> None:
    loose_engine(shop)
    planned = plan(shop.workspace, 0)
    carry_out(shop.workspace, planned, 0)  # and then it died: the objects are still there
    assert len(sweep(shop.workspace.store, dry_run=True).removed) > 0
    inspect_all(shop.workspace, stored_engines(shop.workspace))
    assert run_retention(0.0, dry_run=False, alone=False)["objects_removed"] > 0
    assert sweep(shop.workspace.store, dry_run=True).removed == ()


def test_a_superseded_background_build_goes_and_the_one_that_serves_stays(shop: Shop) -> None:
    register(shop, CHAMPION)
    shop.workspace.deployments.apply(shop.revision)
    for batch in (6, 9):
        shop.workspace.builds.file(shop.request(batch))
    assert [item.live for item in drain(shop.workspace)] == [True, True]
    before = uses(shop)
    assert list(before.values()).count(Use.LIVE) == 2
    removed = run_retention(0.0, dry_run=False, alone=False)["removed"]
    superseded = next(key for key, use in before.items() if use is Use.NONE)
    assert f"engines/{hex_of(superseded)}" in removed
    assert f"builds/{SERVICE}/{hex_of(shop.request(6).key)}" in removed
    assert set(uses(shop).values()) == {Use.LIVE}
    assert len(shop.workspace.builds.builds()) == 2
    placed = shop.workspace.deployments.replaced_engine(SERVICE, short(shop.bundle.digest), "image")
    assert placed is not None and placed.engine.is_file()


def test_what_belongs_to_a_bundle_that_is_gone_is_forgotten(shop: Shop) -> None:
    shop.workspace.builds.file(shop.request())
    shop.workspace.builds.file(shop.request(encoder="sound"))
    assert {item.state for item in drain(shop.workspace)} == {BuildState.DONE, BuildState.FAILED}
    removed = run_retention(0.0, dry_run=False, alone=False)["removed"]
    assert any(name.startswith("builds/") for name in removed)
    assert shop.workspace.builds.builds() == []
    assert set(uses(shop)) == {shop.engine.key}


def test_nothing_goes_while_a_release_writes(shop: Shop) -> None:
    loose_engine(shop)
    with (
        shared(shop.workspace.home.lock("store")),
        pytest.raises(Conflict, match="a release or a background build"),
    ):
        run_retention(0.0, dry_run=False, alone=False)


def test_nothing_goes_where_it_cannot_be_told_what_is_in_use(shop: Shop) -> None:
    loose = loose_engine(shop)
    folder = shop.workspace.home.folder("deployments", SERVICE)
    (folder / "deployment.json").write_text("{")
    with pytest.raises(Refused):
        run_retention(0.0, dry_run=False, alone=False)
    (folder / "deployment.json").unlink()
    assert shop.workspace.store.reference(f"engines/{hex_of(loose)}") is not None


@pytest.mark.parametrize("hours", [-1.0, 1e9])
def test_a_grace_that_is_none_is_refused(shop: Shop, hours: float) -> None:
    with pytest.raises(BadInput):
        run_retention(hours, dry_run=False, alone=False)


class Elsewhere:
    """A store that other machines may write to, and that does not know when a name was set."""

    def __init__(self, inner: ObjectStore) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_a_store_without_ages_marks_first_and_removes_after_the_grace(shop: Shop) -> None:
    loose, clock = loose_engine(shop), ManualClock()
    shop.workspace.__dict__.update(store=Elsewhere(shop.workspace.store), clock=clock)
    first = plan(shop.workspace, HOUR_MS)
    assert first.remove == () and first.waiting == (f"engines/{hex_of(loose)}",)
    carry_out(shop.workspace, first, HOUR_MS)
    clock.advance(3599)
    second = plan(shop.workspace, HOUR_MS)
    assert second.remove == ()
    carry_out(shop.workspace, second, HOUR_MS)
    clock.advance(1)
    third = plan(shop.workspace, HOUR_MS)
    assert third.remove == first.waiting
    carry_out(shop.workspace, third, HOUR_MS)
    assert set(uses(shop)) == {shop.engine.key}


def test_people_are_shown_tables(shop: Shop) -> None:
    loose_engine(shop)
    shop.workspace.builds.file(shop.request(encoder="sound"))

    def run(*words: str, code: int = 0) -> str:
        ended = CliRunner().invoke(build(["engines"]), ["engines", *words])
        assert ended.exit_code == code, ended.output
        return ended.output

    def status() -> str:
        return CliRunner().invoke(build(["status"]), ["status", SERVICE]).output

    assert "waiting for sound at batch 6" in status() and "none runs" in status()
    assert "modalgate engines build --watch" in status()
    assert "no encoder 'sound'" in run("build", code=1)
    assert "failed for sound at batch 6: the bundle has no encoder" in status()
    assert "modalgate engines build --retry" in status()
    assert "no build request waits" in run("build")
    assert "1 failed requests wait again" in run("build", "--retry", code=1)
    assert run("list").count("onnxruntime") == 2
    shown = run("show", short(shop.engine.key))
    assert "pixels [1, 3, 16, 16]" in shown and "least cosine" in shown and "released" in shown
    verified = run("verify", "--all")
    assert "PASS" in verified and "built-only" in verified
    assert "would go" in run("prune", "--dry-run", "--grace-hours", "0")
    assert "1 references and" in run("prune", "--grace-hours", "0")


@pytest.mark.heavy
def test_the_verb_answers_with_one_document_and_the_right_code(shop: Shop) -> None:
    def run(*words: str) -> tuple[int, dict[str, Any]]:
        ended = subprocess.run(
            [sys.executable, "-m", "flows.cli", "engines", *words, "--json"],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        return ended.returncode, json.loads(ended.stdout)

    shop.workspace.builds.file(shop.request())
    assert run("build")[1]["builds"][0]["state"] == "done"
    code, listed = run("list")
    assert code == 0 and len(listed["engines"]) == 2
    code, shown = run("show", short(shop.engine.key))
    assert code == 0 and shown["parity"]["deviations"] and shown["manifest"]["phases"]
    assert run("verify", "--all")[0] == 0
    assert run("verify")[0] == 2
    flip(object_path(shop, shop.engine.engine))
    code, found = run("verify", short(shop.engine.key))
    assert (code, found["status"]) == (3, "blocked")
    assert run("prune", "--dry-run")[0] == 0
