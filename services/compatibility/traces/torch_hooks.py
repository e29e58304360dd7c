"""Forward hooks on every module of a torch encoder, in fp32, bf16 or fp16.

`module.half()` on a CPU really computes in half: every tensor between two operations is rounded to
it, and what is too large for it becomes infinite. (Inside one fused operation, such as a native
layer norm, torch accumulates in fp32.)
"""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from services.compatibility.traces.recorder import Recorder
from validators.compatibility.layers import Trace
from validators.contracts.engine import Precision
from validators.contracts.errors import Unsupported

RUNTIME = "torch"
ROOT = "output"
"""The name of what the whole module returns."""

_TYPES = {
    Precision.FP32: torch.float32,
    Precision.BF16: torch.bfloat16,
    Precision.FP16: torch.float16,
}
_NORMS = ("norm", "bn")  # in lower-cased class names: LayerNorm, BatchNorm2d, T5RMSNorm
_LISTS = (nn.ModuleList, nn.Sequential, nn.ModuleDict)


def trace_module(
    module: nn.Module, inputs: Sequence[tuple[Tensor, ...]], precision: Precision
) -> Trace:
    """Run the items one by one and record what every module gives.

    The module is not changed: a copy is cast. Floating inputs are cast too, integers are not. A
    module that is called again has `#2` after its name; one that gives several tensors has their
    place in brackets. What torch cannot compute in this precision gives a trace with a `note`.

    Raises:
        Unsupported: a precision that torch does not compute in (int8, int4).
        TooLarge: see `Recorder.add`.
    """
    started = time.perf_counter()
    if precision not in _TYPES:
        raise Unsupported(
            f"torch modules are not traced in {precision.value}", where=RUNTIME,
            remedy="Trace the quantised ONNX instead.",
        )  # fmt: skip
    dtype = _TYPES[precision]
    watched = copy.deepcopy(module).eval().to(dtype)
    recorder, hooks = Recorder(), _Hooks(watched)
    note = ""
    try:
        with torch.inference_mode():
            for item, tensors in enumerate(inputs):
                hooks.start(recorder, item)
                watched(*(_cast(tensor, dtype) for tensor in tensors))
    except (RuntimeError, TypeError, NotImplementedError) as error:
        note = f"torch does not compute it in {precision.value}: {_first_line(error)}"
        recorder = Recorder()
    finally:
        hooks.remove()
    layers, sketches = recorder.finish()
    return Trace(
        RUNTIME, precision, None if note else precision, len(inputs), layers, note,
        time.perf_counter() - started, sketches,
    )  # fmt: skip


class _Hooks:
    """One hook per module object: a module at two places of the tree is one, called twice."""

    def __init__(self, root: nn.Module) -> None:
        blocks = _block_names(root)
        self._calls: Counter[str] = Counter()
        self._recorder = Recorder()
        self._item = 0
        self._handles = [
            module.register_forward_hook(
                self._hook(name or ROOT, name in blocks or _is_norm(module), name == "")
            )
            for name, module in root.named_modules()
            if not isinstance(module, nn.ModuleList | nn.ModuleDict)
        ]

    def start(self, recorder: Recorder, item: int) -> None:
        self._recorder, self._item = recorder, item
        self._calls.clear()

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def _hook(self, name: str, key: bool, output: bool) -> Callable[..., None]:
        def record(module: nn.Module, _inputs: object, given: object) -> None:
            self._calls[name] += 1
            calls = self._calls[name]
            label = name if calls == 1 else f"{name}#{calls}"
            for path, tensor in _tensors(given):
                self._recorder.add(
                    self._item, label + path, type(module).__name__,
                    tensor.detach().float().cpu().numpy(), key=key, output=output,
                )  # fmt: skip

        return record


def _tensors(given: object, path: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every floating tensor in what a module returned, with its place."""
    if isinstance(given, Tensor):
        if given.is_floating_point() and given.numel():
            yield path, given
    elif isinstance(given, Mapping):
        for key, value in given.items():
            yield from _tensors(value, f"{path}[{key}]")
    elif isinstance(given, tuple | list):
        for place, value in enumerate(given):
            yield from _tensors(value, path if len(given) == 1 else f"{path}[{place}]")


def _block_names(root: nn.Module) -> set[str]:
    """Modules with parts of their own that stand in a list: the layers of a stack."""
    return {
        f"{name}.{child}" if name else child
        for name, module in root.named_modules()
        if isinstance(module, _LISTS)
        for child, part in module.named_children()
        if next(part.children(), None) is not None
    }


def _is_norm(module: nn.Module) -> bool:
    name = type(module).__name__.lower()
    return any(word in name for word in _NORMS)


def _cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    # a copy: a module may write in place, and the items are traced again in other precisions
    return tensor.detach().clone().to(dtype) if tensor.is_floating_point() else tensor.clone()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"


def as_tensors(arrays: Sequence[Any]) -> tuple[Tensor, ...]:
    """NumPy inputs as tensors of their own."""
    return tuple(torch.from_numpy(array.copy()) for array in arrays)
