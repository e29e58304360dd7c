"""Two versions in children of their own: what is planted is found, and nothing takes us down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from services.children.process import Limits
from services.compatibility.sandbox import Examination, VersionSource, examine
from tests.services.compatibility.planted import entry, write_factories
from tests.services.compatibility.stack_onnx import stack
from validators.compatibility.layer_report import report_layers
from validators.compatibility.layer_verdict import assess_layers
from validators.compatibility.sandboxed import SandboxMeasurement
from validators.contracts.digest import canonical_json
from validators.contracts.engine import Precision
from validators.contracts.errors import BadInput, TooLarge
from validators.contracts.ports import Tensors
from validators.contracts.verdict import Outcome

pytestmark = pytest.mark.slow

Version = Callable[[str, str], VersionSource]
EPSILON = {2: 1e-1}


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> Version:
    """A torch module by its factory, beside a graph of the same contract."""
    folder = tmp_path_factory.mktemp("pipeline")
    write_factories(folder)
    (folder / "good.onnx").write_bytes(stack().SerializeToString())
    (folder / "eps.onnx").write_bytes(stack(epsilon=EPSILON).SerializeToString())

    def make(factory: str, number: str) -> VersionSource:
        chosen = entry(factory, number)
        graph = folder / ("eps.onnx" if factory == "eps" else "good.onnx")
        return VersionSource(chosen.contract, graph, chosen.source, folder)

    return make


def feeds(count: int = 8) -> list[tuple[Tensors, Tensors]]:
    rows = np.random.default_rng(5).standard_normal((count, 16)).astype(np.float32)
    return [({"features": row[None]}, {"features": row[None]}) for row in rows]


@pytest.fixture(scope="module")
def pair(version: Version, tmp_path_factory: pytest.TempPathFactory) -> SandboxMeasurement:
    """Two versions that differ in one epsilon."""
    plan = Examination(required=(Precision.FP32,), planned=(Precision.FP16,))
    folder = tmp_path_factory.mktemp("work")
    measured = examine(
        version("good", "1.0.0"), version("eps", "1.1.0"), feeds(), folder, plan=plan
    )
    assert [path for path in folder.iterdir() if path.is_dir()] == []  # the scratch is gone
    return measured


def test_every_runtime_that_applies_names_the_first_layer_that_parts(
    pair: SandboxMeasurement,
) -> None:
    parting = {
        (table.runtime, table.precision): table.parting.first.new
        for table in report_layers(pair).drifts
        if table.parting is not None
    }
    assert parting == {
        ("onnxruntime", Precision.FP32): "norm_2",
        ("openvino", Precision.FP32): "norm_2",
        ("torch", Precision.FP32): "blocks.2.norm",
        ("torch", Precision.FP16): "blocks.2.norm",
    }


def test_an_epsilon_alone_is_a_finding_with_both_values(pair: SandboxMeasurement) -> None:
    verdict = assess_layers(pair)
    found = next(item for item in verdict.findings if item.code == "norm-epsilon")
    assert found.subject == "stack.epsilon.blocks.2.norm"
    assert (found.limit, found.measured) == ("1e-05 in LayerNorm", "0.1")
    assert verdict.outcome is Outcome.WARN


def test_time_and_memory_of_each_version_are_known(pair: SandboxMeasurement) -> None:
    assert pair.old is not None
    for side in (pair.old, pair.new):
        assert side.faults == ()
        assert side.wall_s > 0
        assert side.peak_bytes > 50 << 20
    report = canonical_json(report_layers(pair))
    assert b"wall_s" not in report and b"peak_bytes" not in report


def test_a_crash_of_one_version_is_a_finding_and_the_rest_is_measured(
    version: Version, tmp_path: Path
) -> None:
    measured = examine(None, version("crashes", "1.1.0"), feeds(2), tmp_path)
    verdict = assess_layers(measured)

    (found,) = (item for item in verdict.findings if item.code == "version-failed")
    assert (found.outcome, found.subject) == (Outcome.ERROR, "stack 1.1.0")
    assert "in torch fp32" in str(found.measured) and "SIGSEGV" in str(found.measured)
    assert measured.new.trace("onnxruntime", Precision.FP32) is not None
    assert measured.new.trace("torch", Precision.FP32) is None


def test_too_much_memory_is_a_finding_too(version: Version, tmp_path: Path) -> None:
    plan = Examination(torch=False, limits=Limits(timeout_s=300, memory_bytes=30 << 20))
    measured = examine(None, version("good", "1.1.0"), feeds(2), tmp_path, plan=plan)
    verdict = assess_layers(measured)
    assert "over its limit of 30 MiB" in measured.new.faults[0]
    assert verdict.outcome is Outcome.ERROR
    assert "nothing-measured" in {item.code for item in verdict.findings}


@pytest.mark.heavy
def test_a_version_that_hangs_is_stopped(version: Version, tmp_path: Path) -> None:
    plan = Examination(openvino=False, limits=Limits(timeout_s=45))
    measured = examine(None, version("hangs", "1.1.0"), feeds(2), tmp_path, plan=plan)
    assert any("not done within 45 s" in fault for fault in measured.new.faults)
    assert assess_layers(measured).outcome is Outcome.ERROR


@pytest.mark.heavy
def test_halves_are_judged_where_they_are_computed(version: Version, tmp_path: Path) -> None:
    """An overflow in the middle, finite again at the end; without its source nobody computes it."""
    plan = Examination(required=(Precision.FP16,))
    whole = version("hidden", "1.0.0")
    found = assess_layers(examine(None, whole, feeds(), tmp_path, plan=plan))
    (broken,) = (item for item in found.findings if item.code == "layer-not-finite")
    assert broken.subject == "stack.raise_" and "8 of 8 items" in str(broken.measured)
    assert found.outcome is Outcome.FAIL

    alone = examine(None, replace(whole, source=None), feeds(), tmp_path, plan=plan)
    halves = [trace for trace in alone.new.traces if trace.precision is Precision.FP16]
    if not any(trace.ran for trace in halves):  # a CPU with halves judges it by OpenVINO
        assert assess_layers(alone).outcome is Outcome.INCONCLUSIVE


def test_what_cannot_be_examined_is_refused(version: Version, tmp_path: Path) -> None:
    good = version("good", "1.0.0")
    with pytest.raises(BadInput, match="no item"):
        examine(None, good, [], tmp_path)
    with pytest.raises(TooLarge, match="at most"):
        examine(None, good, feeds(513), tmp_path)
    other = replace(good, contract=replace(good.contract, name="other"))
    with pytest.raises(BadInput, match="no versions of each other"):
        examine(good, other, feeds(1), tmp_path)
