"""Task: one encoder alone, or two joined, over cases in each precision that torch computes in.

Halves are really computed in half here: torch rounds between any two operations.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from services.children.phases import Phases
from services.compatibility.pair_request import Part, RunAnswer, RunFigures, RunRequest
from services.compatibility.traces.torch_hooks import trace_module
from services.compatibility.traces.torch_steps import Inputs, Steps, flushed_share, watch_steps
from services.engines.export.torch_source import load_module
from services.engines.tensors import Arrays, load_cases
from validators.contracts.engine import Precision
from validators.contracts.errors import BadInput

REQUEST = RunRequest

TYPES = {
    Precision.FP32: torch.float32,
    Precision.BF16: torch.bfloat16,
    Precision.FP16: torch.float16,
}


def run(request: RunRequest, phases: Phases) -> RunAnswer:
    base = Path(request.base)
    with phases.phase("load"):
        modules = [load_module(part.factory, base) for part in request.parts]
        module = _join(modules, request.join)
        names = [name for part in request.parts for name in part.inputs]
        cases = [_inputs(case, names, request.parts) for case in load_cases(Path(request.feeds))]
    with phases.phase("fp32"):
        reference = _Reference(module, cases, request.traced)
    figures = []
    for precision in request.precisions:
        with phases.phase(f"run {precision.value}"):
            figures.append(_measure(module, cases, precision, reference))
    return RunAnswer(tuple(figures))


class _Reference:
    """The answers and the steps in fp32."""

    def __init__(self, module: nn.Module, cases: Sequence[Inputs], traced: int) -> None:
        self.answers = [_answers(module, case) for case in cases]
        self.steps: list[Steps] = [watch_steps(module, case) for case in cases[:traced]]


def _measure(
    source: nn.Module, cases: Sequence[Inputs], precision: Precision, reference: _Reference
) -> RunFigures:
    dtype = TYPES[precision]
    module = source if precision is Precision.FP32 else _cast_copy(source, dtype)
    answers = (
        reference.answers
        if precision is Precision.FP32
        else [_answers(module, _cast(case, dtype)) for case in cases]
    )
    broken = [at for at, answer in enumerate(answers) if not _finite(answer)]
    cosines = [
        _cosine(answer, expected)
        for answer, expected in zip(answers, reference.answers, strict=True)
        if _finite(answer) and _finite(expected)
    ]
    traced = list(zip(cases, reference.steps, strict=False))  # the first ones
    steps = [watch_steps(module, _cast(case, dtype)) for case, _ in traced]
    peak = max((item.peak for item in steps), default=0.0)
    return RunFigures(
        precision,
        precision,
        f"torch {precision.value}, CPU",
        len(cases),
        len(broken),
        peak,
        float(torch.finfo(dtype).max / peak) if peak > 0 else 0.0,
        max((flushed_share(here, there) for here, (_, there) in zip(steps, traced, strict=True)),
            default=0.0),
        min(cosines, default=None),
        _first_broken(source, cases[broken[0]], precision) if broken else "",
    )  # fmt: skip


def _first_broken(module: nn.Module, case: Inputs, precision: Precision) -> str:
    """The first layer, in the order in which they finish, that is not finite."""
    trace = trace_module(module, [case], precision)
    layers = sorted(trace.layers, key=lambda layer: layer.order)
    return next((layer.name for layer in layers if layer.nan or layer.inf), "")


def _join(modules: Sequence[nn.Module], location: str | None) -> nn.Module:
    if location is None:
        return modules[0]
    name, _, attribute = location.partition(":")
    try:
        make: Callable[..., object] = getattr(importlib.import_module(name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadInput(
            f"what joins the pair cannot be found: {error}", where=location,
            remedy="Write it as package.module:callable; it takes the two modules.",
        ) from error  # fmt: skip
    joined = make(*modules)
    if not isinstance(joined, nn.Module):
        raise BadInput(f"{attribute} returned a {type(joined).__name__}", where=location)
    return joined.eval()


def _inputs(case: Arrays, names: Sequence[str], parts: Sequence[Part]) -> Inputs:
    missing = [name for name in names if name not in case]
    if missing:
        raise BadInput(
            f"a case has no {', '.join(missing)}", where=", ".join(part.factory for part in parts)
        )
    return tuple(torch.from_numpy(case[name].copy()) for name in names)


def _answers(module: nn.Module, inputs: Inputs) -> tuple[Tensor, ...]:
    with torch.inference_mode():
        given = module(*(tensor.clone() for tensor in inputs))
    return tuple(given) if isinstance(given, tuple | list) else (given,)


def _finite(answer: Sequence[Tensor]) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in answer)


def _cosine(answer: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    return min(
        float(torch.cosine_similarity(one.float().flatten(), two.float().flatten(), dim=0))
        for one, two in zip(answer, expected, strict=True)
    )


def _cast(case: Inputs, dtype: torch.dtype) -> Inputs:
    return tuple(
        tensor.to(dtype) if tensor.is_floating_point() else tensor.clone() for tensor in case
    )


def _cast_copy(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    return copy.deepcopy(module).to(dtype)
