"""A small residual network: a closed-form map, and a correction that is learnt on top of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from services.compatibility.adapters.maps import FittedMap, score
from services.compatibility.adapters.pairs import AdapterPairs, Questions
from validators.compatibility.adapters import AdapterKind

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Training:
    """How the correction is learnt."""

    hidden: int = 128
    epochs: int = 60
    patience: int = 8
    batch: int = 128
    learning_rate: float = 2e-3
    weight_decay: float = 1e-2
    temperature: float = 0.07
    seed: int = 0


class _Correction(nn.Module):
    """relu(rows @ hidden + hidden_bias) @ out; zero at the start."""

    def __init__(self, wide: int, inner: int, out: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(wide, inner)
        self.out = nn.Linear(inner, out, bias=False)
        nn.init.zeros_(self.out.weight)

    def forward(self, rows: Tensor) -> Tensor:
        corrected: Tensor = self.out(functional.relu(self.hidden(rows)))
        return corrected


def fit_mlp(
    base: FittedMap, fitting: AdapterPairs, questions: Questions, training: Training | None = None
) -> FittedMap:
    """Learn the correction to `base`, stopping where validation `questions` are answered no better.

    Half of the loss is the cosine to the old vector, half tells it from the others of the batch
    (InfoNCE, van den Oord et al. 2018): retrieval is lost by what stands nearer, not by distance.
    Seeded, one thread, AdamW; the same pairs give the same weights on one machine.
    """
    how = training or Training()
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        torch.manual_seed(how.seed)
        correction = _Correction(fitting.new.shape[1], how.hidden, fitting.old.shape[1])
    rows, targets = _tensor(fitting.new), _tensor(fitting.old)
    straight = _tensor(base(fitting.new))
    optimiser = torch.optim.AdamW(
        correction.parameters(), how.learning_rate, weight_decay=how.weight_decay
    )
    order = torch.Generator().manual_seed(how.seed)
    best, kept, stale = score(base, questions), _weights(base, correction, 0), 0
    for epoch in range(1, how.epochs + 1):
        shuffled = torch.randperm(len(rows), generator=order)
        for start in range(0, len(rows), how.batch):
            batch = shuffled[start : start + how.batch]
            optimiser.zero_grad()
            loss = _loss(straight[batch] + correction(rows[batch]), targets[batch], how.temperature)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        found = _weights(base, correction, epoch)
        reached = score(found, questions)
        if reached > best:
            best, kept, stale = reached, found, 0
        else:
            stale += 1
            if stale >= how.patience:
                break
    return kept


def _loss(mapped: Tensor, targets: Tensor, temperature: float) -> Tensor:
    unit = functional.normalize(mapped, dim=1)
    similar = unit @ targets.T
    told_apart = functional.cross_entropy(similar / temperature, torch.arange(len(unit)))
    return (1 - similar.diagonal().mean()) + told_apart


def _weights(base: FittedMap, correction: _Correction, epoch: int) -> FittedMap:
    tensors = {
        **base.tensors,
        "hidden": _array(correction.hidden.weight).T,
        "hidden_bias": _array(correction.hidden.bias),
        "out": _array(correction.out.weight).T,
    }
    return FittedMap(AdapterKind.MLP, tensors, f"{base.kind.value} and {epoch} epochs")


def _tensor(rows: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(rows, np.float32))


def _array(values: Tensor) -> Array:
    return np.array(values.detach().numpy(), np.float64)
