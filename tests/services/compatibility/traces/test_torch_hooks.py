"""Hooks on modules: every tensor of a planted fault is seen, in the precision that computes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from services.compatibility.static_torch import read_module_facts
from services.compatibility.traces.torch_hooks import trace_module
from tests.services.compatibility.planted import FACTORIES
from validators.compatibility.facts import compare_models
from validators.compatibility.layer_drift import measure_drifts
from validators.compatibility.layer_verdict import assess_layers
from validators.compatibility.layers import DriftLimits, Trace, first_divergence
from validators.compatibility.sandboxed import ExaminedVersion, SandboxMeasurement
from validators.contracts.engine import Precision
from validators.contracts.errors import Unsupported
from validators.contracts.verdict import Outcome

Items = Sequence[tuple[Tensor, ...]]


@pytest.fixture(scope="module")
def planted() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(FACTORIES, names)  # noqa: S102 the text of our own module
    return names


def items(count: int = 8, *, poisoned: int | None = None) -> Items:
    rows = torch.from_numpy(np.random.default_rng(5).standard_normal((count, 16)))
    if poisoned is not None:
        rows[poisoned, 0] = -20.0
    return [(row[None].float(),) for row in rows]


def layers(trace: Trace) -> dict[str, Any]:
    return {layer.name: layer for layer in trace.layers}


@pytest.mark.parametrize(
    ("factory", "first", "before"),
    [
        ("scaled", "blocks.1.first", "blocks.1.norm"),
        ("eps", "blocks.2.norm", "blocks.1"),
        ("swapped", "blocks.1.first", "blocks.1.norm"),
    ],
)
def test_the_first_module_that_parts_is_named(
    planted: dict[str, Any], factory: str, first: str, before: str
) -> None:
    old = trace_module(planted["good"](), items(), Precision.FP32)
    new = trace_module(planted[factory](), items(), Precision.FP32)

    found = first_divergence(measure_drifts(old, new), DriftLimits())
    assert found is not None and found.last_agreeing is not None
    assert (found.first.new, found.last_agreeing.new) == (first, before)


def test_a_module_beside_itself_does_not_part(planted: dict[str, Any]) -> None:
    traces = [trace_module(planted["good"](), items(), Precision.FP32) for _ in range(2)]
    drifts = measure_drifts(*traces)
    assert first_divergence(drifts, DriftLimits()) is None
    assert max(drift.relative or 0.0 for drift in drifts) == 0.0


def test_key_layers_are_blocks_norms_and_the_output(planted: dict[str, Any]) -> None:
    trace = trace_module(planted["good"](), items(1), Precision.FP32)
    key = {layer.name for layer in trace.layers if layer.key}
    blocks = {f"blocks.{place}" for place in range(4)}
    assert key == blocks | {f"{block}.norm" for block in blocks} | {"leave", "output"}
    assert [layer.name for layer in trace.layers if layer.output] == ["output"]


def test_half_precision_overflows_where_fp32_does_not(planted: dict[str, Any]) -> None:
    module = planted["hidden"]()
    full = layers(trace_module(module, items(), Precision.FP32))
    half = layers(trace_module(module, items(), Precision.FP16))
    brain = layers(trace_module(module, items(), Precision.BF16))

    assert full["raise_"].broken_items() == 0
    assert half["raise_"].broken_items(full["raise_"]) == 8
    assert half["output"].broken_items(full["output"]) == 0  # masked at the end
    assert brain["raise_"].broken_items(full["raise_"]) == 0  # bf16 reaches as far as fp32
    assert next(module.parameters()).dtype is torch.float32  # a copy was cast


def test_a_nan_in_one_of_500_items_is_seen_and_placed(planted: dict[str, Any]) -> None:
    trace = trace_module(planted["rare"](), items(500, poisoned=311), Precision.FP32)
    broken = [layer for layer in trace.layers if layer.broken_items()]
    assert broken[0].name == "root"
    assert broken[0].broken_places() == (311,)
    assert broken[0].nan == 16

    alone = ExaminedVersion("1.1.0", (trace,), None, None, (), 0.0, 0)
    verdict = assess_layers(
        SandboxMeasurement("stack", None, alone, 500, (Precision.FP32,), (), ())
    )
    (found,) = (item for item in verdict.findings if item.code == "layer-not-finite")
    assert (found.outcome, found.waivable, found.subject) == (Outcome.FAIL, False, "stack.root")
    assert str(found.measured).startswith("1 of 500 items: 0.2 %, up to 0.95 %")


def test_statistics_are_those_of_the_tensors(planted: dict[str, Any]) -> None:
    given = items(20)
    trace = layers(trace_module(planted["good"](), given, Precision.FP32))
    with torch.inference_mode():
        values = torch.cat([planted["good"]().enter(row) for (row,) in given]).double()
    enter = trace["enter"]
    assert enter.mean == pytest.approx(float(values.mean()), rel=1e-5)
    assert enter.variance == pytest.approx(float(values.var(unbiased=False)), rel=1e-5)
    assert enter.linf == pytest.approx(float(values.abs().max()), rel=1e-6)
    assert enter.item_norm == pytest.approx(values.norm(dim=1).tolist(), rel=1e-5)


@dataclass
class _Answer:
    unseen: Tensor


class Odd(nn.Module):
    """Calls one module twice, ties another, gives a dict, works in place, takes integers."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.linear = nn.Linear(4, 4)
        self.tied = self.linear
        self.relu = nn.ReLU(inplace=True)
        self.pair = Pair()

    def forward(self, ids: Tensor) -> dict[str, Any]:
        x = self.linear(self.tied(self.table(ids)))
        first, second = self.pair(self.relu(x))
        return {"vector": first, "both": (second, None), "count": ids, "other": _Answer(x)}


class Pair(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.mean(1), x.amax(1)


def test_modules_called_twice_tied_or_giving_many_tensors_are_told_apart() -> None:
    ids = [(torch.tensor([[1, 2, 3]]),)]
    for precision in (Precision.FP32, Precision.FP16):  # integers stay integers
        trace = trace_module(Odd(), ids, precision)
        assert [layer.name for layer in trace.layers] == [
            "table", "linear", "linear#2", "relu", "pair[0]", "pair[1]", "output[vector]",
            "output[both][0]",
        ]  # fmt: skip


def test_in_place_work_does_not_change_what_was_recorded() -> None:
    trace = layers(trace_module(Odd(), [(torch.tensor([[4, 5]]),)], Precision.FP32))
    assert trace["linear#2"].mean != trace["relu"].mean


class Stubborn(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x @ torch.eye(16)


def test_what_torch_cannot_compute_in_half_is_a_note_and_not_a_result() -> None:
    trace = trace_module(Stubborn(), items(2), Precision.FP16)
    assert not trace.ran and not trace.genuine
    assert "torch does not compute it in fp16" in trace.note
    with pytest.raises(Unsupported):
        trace_module(Stubborn(), items(1), Precision.INT8)


class Masked(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        hidden = x.new_zeros(1, 16).masked_fill(torch.arange(16) > 7, torch.finfo(x.dtype).min)
        return torch.softmax(self.mask(x + hidden), dim=-1)

    def __init__(self) -> None:
        super().__init__()
        self.mask = nn.Identity()


def test_a_mask_is_no_infinity() -> None:
    trace = layers(trace_module(Masked(), items(3), Precision.FP32))
    assert trace["mask"].masked == 24
    assert trace["mask"].broken_items() == 0
    assert trace["mask"].linf < 10


def test_epsilons_of_modules_are_compared_by_name(planted: dict[str, Any]) -> None:
    old, new = (read_module_facts(planted[name]()) for name in ("good", "eps"))
    (found,) = compare_models(old, new)
    assert (found.what, found.old, found.new) == (
        "epsilon.blocks.2.norm", "1e-05 in LayerNorm", "0.1",
    )  # fmt: skip
