from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from infra.keys.file import FileSigner
from services.children.errors import BuildCancelled, ChildCrashed
from services.engines.backends.catalogue import backend
from services.engines.locks import key_lock
from services.engines.manifest import open_manifest, seal_manifest
from services.engines.specs import specify
from tests.services.engines.children import builders
from tests.services.engines.conftest import Yard, make_yard
from tests.services.engines.models import IMAGE, IMAGE_PROFILES, TEXT, TEXT_PROFILES, image_entry
from tests.services.engines.onnx_models import image_model
from validators.contracts.digest import Digest, digest_bytes, hex_of
from validators.contracts.documents import load
from validators.contracts.engine import EngineSpec, EngineState, ParityRecord, Precision, Tolerance
from validators.contracts.errors import BadInput, NotFound, Unavailable, Unsupported
from validators.contracts.pipeline import EncoderSource, SourceKind
from validators.contracts.verdict import Outcome, Waiver

SOURCE = image_entry().source


def _spec(yard: Yard, onnx: Path, backend: str = "onnxruntime") -> EngineSpec:
    digest = yard.store.put_file(onnx)
    return specify(IMAGE, digest, backend, Precision.FP32, IMAGE_PROFILES)


def _reference(spec: EngineSpec) -> str:
    return f"engines/{hex_of(spec.key)}"


def test_a_key_is_built_once_and_then_found(yard: Yard, image_onnx: Path) -> None:
    spec = _spec(yard, image_onnx)
    first = yard.workshop.obtain(spec, spec.onnx, IMAGE)
    phases: list[str] = []
    second = yard.workshop.obtain(spec, spec.onnx, IMAGE, progress=phases.append)
    assert (first.cached, second.cached) == (False, True)
    assert phases == []
    assert second.sealed == first.sealed
    assert yard.store.reference(_reference(spec)) == first.sealed_digest
    assert open_manifest(first.sealed, yard.verifier) == first.manifest


def test_a_damaged_engine_in_the_store_is_built_again(yard: Yard, image_onnx: Path) -> None:
    spec = _spec(yard, image_onnx)
    first = yard.workshop.obtain(spec, spec.onnx, IMAGE)
    stored = [
        p for p in (yard.root / "objects").rglob(hex_of(first.manifest.engine)) if p.is_file()
    ]
    assert len(stored) == 1
    stored[0].chmod(0o600)
    stored[0].write_bytes(b"\0" * first.manifest.size_bytes)
    again = yard.workshop.obtain(spec, spec.onnx, IMAGE)
    assert not again.cached
    assert digest_bytes(yard.store.get(again.manifest.engine)) == again.manifest.engine


def test_an_engine_gone_from_the_store_is_built_again(yard: Yard, image_onnx: Path) -> None:
    spec = _spec(yard, image_onnx)
    first = yard.workshop.obtain(spec, spec.onnx, IMAGE)
    yard.store.delete(first.manifest.engine)
    assert not yard.workshop.obtain(spec, spec.onnx, IMAGE).cached


def test_a_manifest_signed_by_a_stranger_is_not_trusted(
    yard: Yard, image_onnx: Path, tmp_path: Path
) -> None:
    spec = _spec(yard, image_onnx)
    first = yard.workshop.obtain(spec, spec.onnx, IMAGE)
    forged = seal_manifest(first.manifest, make_yard(tmp_path / "stranger").signer)
    yard.store.set_reference(_reference(spec), yard.store.put(forged), expected=first.sealed_digest)
    again = yard.workshop.obtain(spec, spec.onnx, IMAGE)
    assert not again.cached
    open_manifest(again.sealed, yard.verifier)


def test_a_contract_that_only_means_something_else_needs_no_new_build(
    yard: Yard, image_onnx: Path
) -> None:
    spec = _spec(yard, image_onnx)
    first = yard.workshop.obtain(spec, spec.onnx, IMAGE)
    narrower = dataclasses.replace(IMAGE.inputs[0], value_range=(0.0, 1.0))
    contract = dataclasses.replace(IMAGE, inputs=(narrower,))
    second = yard.workshop.obtain(spec, spec.onnx, contract)
    assert second.cached
    assert second.manifest.engine == first.manifest.engine
    assert second.manifest.inputs == contract.inputs


def test_a_spec_of_another_model_is_refused(yard: Yard, image_onnx: Path) -> None:
    spec = _spec(yard, image_onnx)
    with pytest.raises(BadInput):
        yard.workshop.obtain(spec, digest_bytes(b"other"), IMAGE)
    absent = dataclasses.replace(spec, onnx=digest_bytes(b"other"))
    with pytest.raises(NotFound):
        yard.workshop.obtain(absent, absent.onnx, IMAGE)


def _kill_child(phase: str) -> None:
    if phase == "load backend":
        for child in builders():
            child.kill()


def test_a_builder_killed_in_the_middle_leaves_nothing(yard: Yard, image_onnx: Path) -> None:
    spec = _spec(yard, image_onnx, "openvino")
    before = set(yard.store.objects())
    with pytest.raises(ChildCrashed, match="SIGKILL"):
        yard.workshop.obtain(spec, spec.onnx, IMAGE, progress=_kill_child)
    assert set(yard.store.objects()) == before
    assert yard.store.reference(_reference(spec)) is None
    assert not [path for path in (yard.root / "work").iterdir() if path.is_dir()]
    assert not yard.workshop.obtain(spec, spec.onnx, IMAGE).cached  # and the next one works


def test_cancel_reaches_a_build_and_one_that_waits(yard: Yard, image_onnx: Path) -> None:
    spec = _spec(yard, image_onnx)
    with pytest.raises(BuildCancelled):
        yard.workshop.obtain(spec, spec.onnx, IMAGE, cancel=lambda: True)
    with key_lock(yard.root / "locks", spec.key), pytest.raises(BuildCancelled, match="another"):
        yard.workshop.obtain(spec, spec.onnx, IMAGE, cancel=lambda: True)
    assert yard.store.reference(_reference(spec)) is None


def test_two_threads_for_one_key_build_once(yard: Yard, image_onnx: Path) -> None:
    spec = _spec(yard, image_onnx)
    cached: list[bool] = []

    def want() -> None:
        cached.append(yard.workshop.obtain(spec, spec.onnx, IMAGE).cached)

    threads = [threading.Thread(target=want) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(cached) == [False, True, True]


@pytest.mark.slow
def test_two_processes_that_race_for_one_key_build_once(tmp_path: Path, image_onnx: Path) -> None:
    signer = FileSigner.create_or_open(tmp_path / "key.pem")
    signer.publish(tmp_path / "trusted")
    command = [sys.executable, "-m", "tests.services.engines.racer", str(tmp_path), str(image_onnx)]
    environment = os.environ | {"PYTHONPATH": str(Path.cwd())}
    racers = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(2)
    ]
    for racer in racers:
        assert racer.stdout is not None and racer.stdout.readline() == "ready\n"
    answers = [racer.communicate("go\n")[0].split() for racer in racers]
    assert sorted(answer[0] for answer in answers) == ["False", "True"]
    assert answers[0][1] == answers[1][1]


def test_a_verdict_belongs_to_one_build_and_is_kept(
    yard: Yard, image_onnx: Path, factories: Path
) -> None:
    spec = _spec(yard, image_onnx)
    built = yard.workshop.obtain(spec, spec.onnx, IMAGE)
    first = yard.workshop.verify(built, IMAGE, SOURCE, factories)
    assert first.engine is not None and not first.engine.cached
    manifest = first.engine.manifest
    assert manifest.state is EngineState.VERIFIED
    assert manifest.engine == built.manifest.engine
    assert manifest.parity == first.verdict.evidence[0].digest
    assert load(ParityRecord, yard.store.get(manifest.parity)) == first.record
    phases: list[str] = []
    second = yard.workshop.verify(built, IMAGE, SOURCE, factories, progress=phases.append)
    assert phases == [] and second.engine is not None and second.engine.cached
    assert second.verdict == first.verdict
    real = [{"pixels": np.zeros((1, 3, 16, 16), np.float32)}]
    third = yard.workshop.verify(built, IMAGE, SOURCE, factories, real_inputs=real)
    assert "real 0" in {item.case for item in third.record.deviations}


def test_damaged_answers_of_the_source_are_made_again(
    yard: Yard, image_onnx: Path, factories: Path
) -> None:
    spec = _spec(yard, image_onnx)
    built = yard.workshop.obtain(spec, spec.onnx, IMAGE)
    impossible = Tolerance(max_rel=-1.0, cosine_min=0.0)  # nothing is sealed: each one measures
    first = yard.workshop.verify(built, IMAGE, SOURCE, factories, tolerance=impossible)
    (kept,) = (yard.root / "work").glob("reference-*.npz")
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    again = yard.workshop.verify(built, IMAGE, SOURCE, factories, tolerance=impossible)
    assert again.record == first.record
    assert len(kept.read_bytes()) == len(whole)


def test_an_engine_too_far_from_its_model_is_not_sealed(
    yard: Yard, image_onnx: Path, factories: Path
) -> None:
    spec = _spec(yard, image_onnx)
    built = yard.workshop.obtain(spec, spec.onnx, IMAGE)
    impossible = Tolerance(max_rel=-1.0, cosine_min=0.0)
    failed = yard.workshop.verify(built, IMAGE, SOURCE, factories, tolerance=impossible)
    assert failed.verdict.outcome is Outcome.FAIL and failed.engine is None
    assert yard.store.contains(failed.verdict.evidence[0].digest)
    assert not list(yard.store.references("engines-verified/"))
    waivers = [Waiver(item.name, "ada", "a test", 10.0) for item in failed.verdict.findings]
    waived = yard.workshop.verify(
        built, IMAGE, SOURCE, factories, tolerance=impossible, waivers=waivers, now_s=1.0
    )
    assert waived.verdict.outcome is Outcome.WARN and waived.engine is not None


def test_an_engine_of_another_model_fails_parity(yard: Yard, factories: Path) -> None:
    """The engine is of a hand-made model, the reference the torch one: same contract."""
    digest = yard.store.put(image_model().SerializeToString())
    spec = specify(IMAGE, digest, "onnxruntime", Precision.FP32, IMAGE_PROFILES)
    built = yard.workshop.obtain(spec, digest, IMAGE)
    against_torch = yard.workshop.verify(built, IMAGE, SOURCE, factories)
    assert against_torch.verdict.outcome is Outcome.FAIL and against_torch.engine is None
    own = EncoderSource(SourceKind.ONNX, "unused: the checked file in the store is the reference")
    against_itself = yard.workshop.verify(built, IMAGE, own, factories)
    assert against_itself.verdict.outcome is Outcome.PASS
    assert against_itself.record.reference.startswith("onnxruntime")


def test_an_engine_of_a_baked_model_names_the_model_behind_it_and_is_compared_with_that(
    yard: Yard, factories: Path
) -> None:
    source = yard.store.put(image_model().SerializeToString())
    changed = image_model()
    changed.producer_name = "baked"  # the same function from other bytes
    baked = yard.store.put(changed.SerializeToString())
    spec = specify(IMAGE, baked, "onnxruntime", Precision.FP32, IMAGE_PROFILES)
    built = yard.workshop.obtain(spec, baked, IMAGE, source_onnx=source)
    assert (built.manifest.spec.onnx, built.manifest.source) == (baked, source)
    yard.store.delete(baked)  # the comparison needs the source only
    own = EncoderSource(SourceKind.ONNX, "unused: the source in the store is the reference")
    found = yard.workshop.verify(built, IMAGE, own, factories)
    assert found.engine is not None and found.engine.manifest.source == source


def test_a_bake_from_another_model_gets_a_new_manifest_and_no_new_build(yard: Yard) -> None:
    onnx = yard.store.put(image_model().SerializeToString())
    spec = specify(IMAGE, onnx, "onnxruntime", Precision.FP32, IMAGE_PROFILES)
    plain = yard.workshop.obtain(spec, onnx, IMAGE, source_onnx=onnx)
    assert plain.manifest.source_onnx is None
    baked = yard.workshop.obtain(spec, onnx, IMAGE, source_onnx=digest_bytes(b"source"))
    assert baked.cached and baked.manifest.source == digest_bytes(b"source")


def test_a_backend_that_is_not_there_is_unavailable_with_its_reason(image_onnx: Path) -> None:
    found = backend("tensorrt").probe()
    if found.available:
        pytest.skip("TensorRT is here")
    with pytest.raises(Unavailable) as caught:
        specify(IMAGE, Digest("sha256:" + "0" * 64), "tensorrt", Precision.FP32, IMAGE_PROFILES)
    assert found.reason in caught.value.what


def test_a_spec_writes_its_profiles_out_in_the_contracts_order() -> None:
    digest = Digest("sha256:" + "0" * 64)
    turned = tuple(
        dataclasses.replace(item, ranges=tuple(reversed(item.ranges))) for item in TEXT_PROFILES
    )
    keys = {
        specify(TEXT, digest, "onnxruntime", Precision.FP32, item).key
        for item in (TEXT_PROFILES, turned)
    }
    assert len(keys) == 1
    with pytest.raises(Unsupported):
        specify(TEXT, digest, "onnxruntime", Precision.BF16, TEXT_PROFILES)


def test_the_source_model_is_run_once_for_all_backends(
    yard: Yard, image_onnx: Path, factories: Path
) -> None:
    phases: list[str] = []
    for name in ("onnxruntime", "openvino"):
        spec = _spec(yard, image_onnx, name)
        built = yard.workshop.obtain(spec, spec.onnx, IMAGE)
        phases = []
        verified = yard.workshop.verify(built, IMAGE, SOURCE, factories, progress=phases.append)
        assert verified.verdict.outcome is Outcome.PASS
    assert phases == ["import", "load", "run"]  # of the engine's child alone
