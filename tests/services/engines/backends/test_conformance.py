"""One suite over every backend: whoever adds a folder has to pass it."""

from __future__ import annotations

import concurrent.futures
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.engines.backends.catalogue import backend
from services.engines.cases import make_cases
from services.engines.load import load_engine
from services.engines.specs import specify
from services.engines.workshop import EngineWorkshop
from tests.services.engines.conftest import Yard
from tests.services.engines.models import TEXT_ENTRY, image_entry
from validators.contracts.engine import EngineSpec, EngineState, Precision
from validators.contracts.errors import BadInput, Refused, Unavailable, Unsupported
from validators.contracts.pipeline import EncoderEntry
from validators.contracts.ports import RunningEngine
from validators.contracts.verdict import Outcome

BACKENDS = [
    "openvino",
    "onnxruntime",
    pytest.param("tensorrt", marks=pytest.mark.gpu),
    "tensorrt_rtx",
]
TARGETS = {"tensorrt_rtx": ("SM86", "SM89", "SM120")}
NOT_TAKEN = {
    "onnxruntime": (Precision.FP16, Precision.BF16),
    "tensorrt": (Precision.INT4,),
}


@pytest.fixture(params=BACKENDS)
def name(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    found = backend(chosen).probe()
    if not found.available:
        pytest.skip(found.reason)
    return chosen


@pytest.fixture
def runnable(name: str) -> str:
    found = backend(name).probe()
    if not found.can_run:
        pytest.skip(found.reason)
    return name


def _targets(name: str) -> tuple[str, ...]:
    can_run = backend(name).probe().can_run
    return ("host",) if can_run else TARGETS[name]


def _spec(yard: Yard, onnx: Path, entry: EncoderEntry, name: str) -> EngineSpec:
    return specify(
        entry.contract, yard.store.put_file(onnx), name, entry.precision, entry.profiles,
        targets=_targets(name),
    )  # fmt: skip


@pytest.fixture
def running(
    runnable: str, shared_yard: Yard, text_onnx: Path, factories: Path, tmp_path: Path
) -> Iterator[RunningEngine]:
    spec = _spec(shared_yard, text_onnx, TEXT_ENTRY, runnable)
    workshop, contract = shared_yard.workshop, TEXT_ENTRY.contract
    built = workshop.obtain(spec, spec.onnx, contract)
    verified = workshop.verify(built, contract, TEXT_ENTRY.source, factories)
    assert verified.engine is not None
    path = tmp_path / "engine"
    shared_yard.store.fetch(verified.engine.manifest.engine, path)
    engine = load_engine(verified.engine.sealed, path, verifier=shared_yard.verifier)
    yield engine
    engine.close()


def test_a_build_is_sealed_with_all_that_is_known_of_it(
    name: str, shared_yard: Yard, image_onnx: Path
) -> None:
    entry = image_entry()
    spec = _spec(shared_yard, image_onnx, entry, name)
    phases: list[str] = []
    built = shared_yard.workshop.obtain(spec, spec.onnx, entry.contract, progress=phases.append)
    manifest = built.manifest
    assert manifest.state is EngineState.BUILT
    assert manifest.key == spec.key and manifest.spec == spec
    assert manifest.size_bytes == len(shared_yard.store.get(manifest.engine)) > 0
    assert {"parse", "compile"} <= {phase.name for phase in manifest.phases}
    assert [phase.name for phase in manifest.phases] == phases
    assert shared_yard.store.contains(manifest.build_log)
    again = shared_yard.workshop.obtain(spec, spec.onnx, entry.contract)
    assert again.cached and again.sealed == built.sealed


def test_the_engine_agrees_with_its_source_model(
    runnable: str, shared_yard: Yard, image_onnx: Path, factories: Path
) -> None:
    entry = image_entry()
    spec = _spec(shared_yard, image_onnx, entry, runnable)
    built = shared_yard.workshop.obtain(spec, spec.onnx, entry.contract)
    verified = shared_yard.workshop.verify(built, entry.contract, entry.source, factories)
    assert verified.verdict.outcome is Outcome.PASS
    assert {item.case for item in verified.record.deviations} >= {
        "profile 0 minimum", "profile 0 optimum", "profile 0 maximum", "between 0",
    }  # fmt: skip
    assert verified.engine is not None
    assert verified.engine.manifest.state is EngineState.VERIFIED


def test_a_build_that_cannot_run_here_stays_built(
    name: str, shared_yard: Yard, image_onnx: Path, factories: Path, tmp_path: Path
) -> None:
    if backend(name).probe().can_run:
        pytest.skip("this host runs it")
    entry = image_entry()
    spec = _spec(shared_yard, image_onnx, entry, name)
    built = shared_yard.workshop.obtain(spec, spec.onnx, entry.contract)
    with pytest.raises(Unavailable) as caught:
        shared_yard.workshop.verify(built, entry.contract, entry.source, factories)
    assert spec.target.name in caught.value.remedy
    shared_yard.store.fetch(built.manifest.engine, tmp_path / "plan")
    with pytest.raises(Refused, match="BUILT, not VERIFIED"):
        load_engine(built.sealed, tmp_path / "plan", verifier=shared_yard.verifier)


def test_every_profile_is_served_and_nothing_outside(running: RunningEngine) -> None:
    spec = running.manifest.spec
    for case in make_cases(running.manifest.inputs, spec.profiles):
        answer = running.run(case.feeds)
        assert answer["embedding"].shape == (case.feeds["ids"].shape[0], 16)
        np.testing.assert_allclose(np.linalg.norm(answer["embedding"], axis=1), 1, rtol=1e-4)
    for batch, tokens in ((1, 33), (8, 32), (9, 8)):  # (8, 32) lies in the union of both only
        ones = np.ones((batch, tokens), np.int64)
        with pytest.raises(BadInput, match="outside every profile"):
            running.run({"ids": ones, "mask": ones})


def test_answers_outlive_the_request_and_the_engine(running: RunningEngine) -> None:
    cases = make_cases(running.manifest.inputs, running.manifest.spec.profiles)
    first = running.run(cases[0].feeds)["embedding"]
    kept = first.copy()
    for case in cases:
        running.run(case.feeds)
    running.close()
    np.testing.assert_array_equal(first, kept)
    with pytest.raises(Unavailable, match="closed"):
        running.run(cases[0].feeds)


def test_threads_at_once_get_each_their_own_answer(running: RunningEngine) -> None:
    cases = make_cases(running.manifest.inputs, running.manifest.spec.profiles, between=6)
    alone = [running.run(case.feeds)["embedding"] for case in cases]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda case: running.run(case.feeds)["embedding"], cases * 10))
    for index, answer in enumerate(together):
        np.testing.assert_allclose(answer, alone[index % len(cases)], atol=1e-6)


def test_what_the_backend_cannot_take_is_refused_before_a_build(
    name: str, shared_yard: Yard, image_onnx: Path
) -> None:
    spec = _spec(shared_yard, image_onnx, image_entry(), name)
    changes: list[dict[str, Any]] = [{"flags": (("turbo", "on"),)}]
    changes += [{"precision": item} for item in NOT_TAKEN.get(name, ())]
    for change in changes:
        with pytest.raises(Unsupported) as caught:
            backend(name).check(dataclasses.replace(spec, **change))
        assert caught.value.remedy


def test_a_precision_that_the_model_does_not_carry_is_refused_by_the_build(
    name: str, yard: Yard, image_onnx: Path
) -> None:
    spec = _spec(yard, image_onnx, image_entry(), name)
    asked = dataclasses.replace(spec, precision=Precision.INT8)
    workshop: EngineWorkshop = yard.workshop
    with pytest.raises(Unsupported, match="fp32, not int8"):
        workshop.obtain(asked, asked.onnx, image_entry().contract)
    assert not list(yard.store.references("engines/"))


def test_a_target_it_cannot_compile_for_is_refused(name: str) -> None:
    with pytest.raises((Unsupported, Unavailable)):
        backend(name).choose_target(("SM42",), backend(name).probe())
