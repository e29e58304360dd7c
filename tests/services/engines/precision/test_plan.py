"""Real engines of a tiny model, measured side by side."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from services.children.errors import (
    BuildCancelled,
    ChildCrashed,
    ChildTimedOut,
    ChildTooLarge,
)
from services.engines.precision.measure import (
    Bench,
    Candidate,
    Pace,
    measure_candidates,
    predicted_ms,
    timed_cases,
)
from services.engines.precision.measure_request import Machine
from services.engines.precision.plan import build_candidates, make_table
from services.engines.specs import specify
from tests.services.engines.children import builders
from tests.services.engines.conftest import Yard, make_yard
from tests.services.engines.models import IMAGE, IMAGE_PROFILES, TEXT, TEXT_PROFILES
from tests.services.engines.onnx_models import image_model
from validators.contracts.digest import Digest, canonical_json
from validators.contracts.documents import load
from validators.contracts.engine import Precision
from validators.contracts.errors import (
    BadInput,
    DiskFull,
    ModalgateError,
    Refused,
    Unavailable,
    Unsupported,
)
from validators.contracts.pipeline import EncoderSource, SourceKind
from validators.contracts.ports import Tensors
from validators.precision.bandwidth import Layer
from validators.precision.words import Objective, PrecisionTable

FP32, BF16, FP16, INT8 = Precision.FP32, Precision.BF16, Precision.FP16, Precision.INT8
MACHINE = Machine(
    (Layer("project", 24, 24, 11),), ((1 << 20, 1e10),), ((FP32, 1e10), (BF16, 2e10)), 1.0
)
SOURCE = EncoderSource(SourceKind.ONNX, "unused: the file in the store is the source")


def items(count: int) -> tuple[Tensors, ...]:
    draw = np.random.default_rng(3)
    return tuple(
        {"pixels": draw.uniform(-1, 1, (1, 3, 16, 16)).astype(np.float32)} for _ in range(count)
    )


def bench_of(yard: Yard, **changes: object) -> Bench:
    onnx = yard.store.put(image_model().SerializeToString())
    made = Bench(
        IMAGE, onnx, IMAGE_PROFILES, SOURCE, yard.root, yard.store, yard.root / "work",
        real=items(6), held_out=(2, 5),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[PrecisionTable, list[Precision]]:
    yard = make_yard(tmp_path_factory.mktemp("precision"))
    bench = bench_of(yard)
    asked: list[Precision] = []

    def bake(precision: Precision) -> Digest:
        asked.append(precision)
        if precision is INT8:
            raise Unsupported("nothing holds in int8", where="image")
        return bench.onnx

    table = make_table(
        bench, "openvino", [FP32, FP16, BF16, INT8, FP32], workshop=yard.workshop, bake=bake,
        pace=Pace(rounds=2, budget_ms=20), machine=MACHINE,
    )  # fmt: skip
    return table, asked


@pytest.mark.slow
def test_every_candidate_is_a_row_with_figures_or_with_its_reason(
    measured: tuple[PrecisionTable, list[Precision]],
) -> None:
    table, asked = measured
    assert asked == [FP32, FP16, BF16, INT8]  # each once
    assert {row.precision for row in table.measurements} == {FP32, FP16, BF16, INT8}
    int8 = table.of(INT8)
    assert int8 is not None and int8.refused.startswith("nothing holds in int8")
    fp32 = table.of(FP32)
    assert fp32 is not None and fp32.measured
    assert [timing.batch for timing in fp32.timings] == [1, 2, 8]
    for timing in fp32.timings:
        assert len(timing.rounds_ms) == 2
        assert timing.p50_ms <= timing.p99_ms
        assert timing.predicted_ms is not None
    assert fp32.max_rel is not None and fp32.max_rel < 1e-3
    assert fp32.peak_bytes and fp32.engine_bytes and fp32.build_ms and fp32.load_ms
    assert {metric.output: metric.items for metric in fp32.tasks} == {"features": 6, "logits": 6}
    assert table.real_items == 6
    for narrow in (FP16, BF16):  # really computed on this host, or refused with why
        row = table.of(narrow)
        assert row is not None and (row.measured or row.refused)


@pytest.mark.slow
def test_a_table_is_a_document(measured: tuple[PrecisionTable, list[Precision]]) -> None:
    table, _ = measured
    assert load(PrecisionTable, canonical_json(table)) == table
    fp32 = table.of(FP32)
    assert fp32 is not None
    assert fp32.timing(Objective.THROUGHPUT).batch == 8


@pytest.mark.slow
def test_measuring_can_be_cancelled(tmp_path: Path) -> None:
    yard = make_yard(tmp_path)
    bench = bench_of(yard, cancel=lambda: True)
    with pytest.raises(BuildCancelled):
        make_table(
            bench, "onnxruntime", [FP32], workshop=yard.workshop, bake=lambda _: bench.onnx,
            machine=MACHINE,
        )  # fmt: skip


@pytest.mark.slow
def test_an_engine_that_cannot_be_run_is_refused_and_the_others_are_measured(
    tmp_path: Path,
) -> None:
    yard = make_yard(tmp_path)
    bench = bench_of(yard)
    spec = specify(IMAGE, bench.onnx, "onnxruntime", FP32, IMAGE_PROFILES)
    whole = yard.workshop.obtain(spec, bench.onnx, IMAGE).manifest
    cut = yard.store.put(yard.store.get(whole.engine)[:200])
    broken = dataclasses.replace(whole, engine=cut)
    candidates = [Candidate(FP32, whole, ()), Candidate(INT8, broken, ())]
    fp32, int8 = measure_candidates(bench, candidates, Pace(rounds=1, budget_ms=10))
    assert fp32.measured
    assert not int8.measured and "does not take this engine" in int8.refused


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (Unsupported("no layer holds"), False),
        (BadInput("no such option"), False),
        (Refused("the compiler does not take it"), False),
        (ChildCrashed("died by SIGSEGV"), True),
        (ChildTimedOut("it took too long"), True),
        (ChildTooLarge("it took too much memory"), True),
        (Unavailable("the runtime is not there"), True),
        (DiskFull("no room"), True),
    ],
)
def test_only_what_is_said_of_the_input_lasts(
    tmp_path: Path, error: ModalgateError, transient: bool
) -> None:
    yard = make_yard(tmp_path)

    def bake(precision: Precision) -> Digest:
        raise error

    built = build_candidates(bench_of(yard), "openvino", [INT8], yard.workshop, bake)
    (row,) = built.refused
    assert (row.refused, row.transient) == (str(error), transient)


@pytest.mark.slow
def test_a_builder_that_was_killed_is_not_taken_for_a_precision_that_does_not_work(
    tmp_path: Path,
) -> None:
    def kill(phase: str) -> None:
        if phase == "load backend":
            for child in builders():
                child.kill()

    yard = make_yard(tmp_path)
    bench = bench_of(yard, progress=kill)
    built = build_candidates(bench, "openvino", [FP32], yard.workshop, lambda _: bench.onnx)
    assert not built.candidates
    assert built.refused[0].transient and "SIGKILL" in built.refused[0].refused


def test_batches_that_are_timed_come_from_every_profile() -> None:
    assert sorted(timed_cases(IMAGE, IMAGE_PROFILES)) == [1, 2, 8]
    text = timed_cases(TEXT, TEXT_PROFILES)
    assert sorted(text) == [1, 8]
    assert text[8].feeds["ids"].shape == (8, 8)  # the largest batch at the optimum of tokens


def test_the_model_s_prediction_reads_weights_from_where_they_fit() -> None:
    layers = (Layer("large", 1 << 20, 1 << 20, 0),)
    near = ((1 << 20, 100e9), (1 << 22, 10e9))
    machine = Machine(layers, near, ((FP32, 1e15),), 1.0)
    assert predicted_ms(machine, FP32, 1) == pytest.approx(1e3 * (1 << 22) / 10e9)
    assert predicted_ms(machine, INT8, 1) == pytest.approx(1e3 * (1 << 20) / 100e9)
