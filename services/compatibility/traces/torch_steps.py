"""Every operation of a torch module, not only its layers: what overflows and what underflows.

A layer norm that is written out flushes its variance to zero between two operations; no hook on a
module sees that. Figures of a precision are compared with fp32's, operation by operation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

Inputs = tuple[Tensor, ...]


@dataclass(slots=True)
class Steps:
    """Of each operation, by name and occurrence: where its values are zero. And the peak of all."""

    zeros: dict[str, Tensor] = field(default_factory=dict)
    peak: float = 0.0


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.steps = Steps()
        self._seen: Counter[str] = Counter()

    def __torch_dispatch__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        arguments: tuple[Any, ...] = (),
        named: dict[str, Any] | None = None,
    ) -> Any:
        given = function(*arguments, **(named or {}))
        first = given[0] if isinstance(given, tuple | list) and given else given
        if isinstance(first, Tensor) and first.is_floating_point() and first.numel():
            self._take(str(function), first)
        return given

    def _take(self, name: str, values: Tensor) -> None:
        self._seen[name] += 1
        self.steps.zeros[f"{name} {self._seen[name]}"] = values == 0
        finite = values[torch.isfinite(values)]
        if finite.numel():
            self.steps.peak = max(self.steps.peak, float(finite.abs().max()))


def watch_steps(module: nn.Module, inputs: Inputs) -> Steps:
    """Run one item and note every operation."""
    watch = _Watch()
    with torch.inference_mode(), watch:
        module(*inputs)
    return watch.steps


def flushed_share(here: Steps, reference: Steps) -> float:
    """The largest share, over operations of one shape, of values that are zero only here."""
    worst = 0.0
    for name, zero in here.zeros.items():
        other = reference.zeros.get(name)
        if other is None or other.shape != zero.shape or bool(other.all()):
            continue
        lost = (zero & ~other).sum() / (~other).sum()
        worst = max(worst, float(lost))
    return worst
