"""What a torch module says about itself: its normalisations' epsilons, weights and their types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from torch import nn

from validators.compatibility.facts import ModelFacts, NormFact

_EPSILONS = ("eps", "epsilon", "variance_epsilon", "layer_norm_eps")
"""The names that libraries give the constant under the root."""


def read_module_facts(module: nn.Module) -> ModelFacts:
    """The facts of a module; those of a graph (opset, pooling) are not in it.

    Tied weights count once.
    """
    types: Counter[str] = Counter()
    weights = []
    for name, tensor in module.named_parameters():
        types[str(tensor.dtype).removeprefix("torch.")] += tensor.numel()
        weights.append((name, tuple(tensor.shape)))
    return ModelFacts(
        opset=0,
        parameters=sum(types.values()),
        types=tuple(sorted(types.items())),
        quantised=(),
        weights=tuple(sorted(weights)),
        norms=tuple(_norms(module)),
    )


def _norms(module: nn.Module) -> Iterator[NormFact]:
    for name, part in module.named_modules():
        for attribute in _EPSILONS:
            epsilon = getattr(part, attribute, None)
            if isinstance(epsilon, float):
                yield NormFact(name, type(part).__name__, epsilon)
                break
