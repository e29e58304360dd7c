"""Feeds a version what other conventions would have made of the same items, and compares.

The weights say what they expect by what they answer: a version that was trained on channels in
reverse order agrees with its predecessor only where it is given them so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.compatibility.bootstrap import estimate_mean, estimate_share
from services.compatibility.compare import EncoderVersion, Feeds
from services.compatibility.conventions import Counterfactual, counterfactuals_of
from services.compatibility.geometry import neighbour_overlap, neighbours_of
from validators.compatibility.preprocessing import InputCheck, InputSettings, TriedInput
from validators.contracts.encoder import EncoderContract
from validators.contracts.errors import BadInput
from validators.contracts.ports import Tensors
from validators.contracts.tensors import Meaning

Array = npt.NDArray[Any]

MAX_ITEMS = 48
"""Items that every way is tried on; more are thinned evenly."""

_ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class _Answers:
    """What one version answered: an embedding [N, D], class scores [N, C], where it has them."""

    embedding: Array | None
    scores: Array | None

    def finite(self) -> bool:
        parts = [item for item in (self.embedding, self.scores) if item is not None]
        return bool(parts) and all(np.isfinite(item).all() for item in parts)

    @property
    def confidence(self) -> float | None:
        if self.scores is None:
            return None
        shifted = np.exp(self.scores - self.scores.max(axis=1, keepdims=True))
        return float((shifted.max(axis=1) / shifted.sum(axis=1)).mean())


def check_inputs(
    old: EncoderVersion,
    new: EncoderVersion,
    feeds: Sequence[Feeds],
    settings: InputSettings | None = None,
) -> InputCheck:
    """Whether some known way to feed the new version makes it agree with the old one.

    Where they agree as they are, or are fewer items than can tell, nothing else is run. A way that
    the engine refuses (another shape, numbers out of bounds) or does not survive as finite numbers
    is no candidate. What helps the new version is tried with the old one too, so that whoever
    judges can tell which of the two was fed wrongly.

    Raises:
        BadInput: an input that does not fit its engine as declared.
    """
    limits = settings or InputSettings()
    spread = np.linspace(0, len(feeds) - 1, min(len(feeds), MAX_ITEMS)).round().astype(int)
    olds, news = [feeds[at][0] for at in spread], [feeds[at][1] for at in spread]
    before, after = _run(old, olds), _run(new, news)
    name, items = old.contract.name, len(olds)
    comparable = before.finite() and after.finite() and items >= 4
    now = _agreement(before, after) if comparable else np.zeros(0)
    declared = estimate_share(now)
    ways = counterfactuals_of(new.contract)
    if not comparable or declared.value >= limits.fine or items < limits.least_items or not ways:
        return InputCheck(name, items, declared, ())
    changed = _try(new, news, ways, lambda answers: _agreement(before, answers), now)
    shown = {item.code for item in changed if item.gain.low > limits.gain}
    back = [way for way in counterfactuals_of(old.contract) if way.code in shown]
    reverted = _try(old, olds, back, lambda answers: _agreement(answers, after), now)
    return InputCheck(name, items, declared, changed, reverted, before.confidence, after.confidence)


def _try(
    version: EncoderVersion,
    feeds: Sequence[Tensors],
    ways: Sequence[Counterfactual],
    agree: Callable[[_Answers], Array],
    now: Array,
) -> tuple[TriedInput, ...]:
    found = []
    for way in ways:
        try:
            answers = _run(version, [_changed(feed, way, version.contract) for feed in feeds])
        except BadInput:
            continue  # this engine takes no such input
        if not answers.finite():
            continue
        agreement = agree(answers)
        gain = estimate_mean(agreement - now, _ALPHA / len(ways))
        found.append(
            TriedInput(
                way.code, way.says, way.remedy, estimate_share(agreement), gain, answers.confidence
            )
        )
    return tuple(found)


def _run(version: EncoderVersion, feeds: Sequence[Tensors]) -> _Answers:
    outputs = version.contract.outputs
    embedding = next((s.name for s in outputs if s.meaning is Meaning.GLOBAL_EMBEDDING), None)
    scores = next((s.name for s in outputs if s.meaning is Meaning.LOGITS), None)
    rows: dict[str, list[Array]] = {name: [] for name in (embedding, scores) if name}
    for feed in feeds:
        answer = version.engine.run(feed)
        for name, found in rows.items():
            found.append(answer[name].reshape(len(answer[name]), -1).astype(np.float64))
    stacked = {name: np.concatenate(found) for name, found in rows.items() if found}
    return _Answers(
        stacked.get(embedding) if embedding else None, stacked.get(scores) if scores else None
    )


def _agreement(first: _Answers, second: _Answers) -> Array:
    """[N] within 0..1: shares of common neighbours and equal first classes, averaged."""
    parts = []
    if first.embedding is not None and second.embedding is not None:
        neighbours = neighbours_of(len(first.embedding))
        parts.append(neighbour_overlap(first.embedding, second.embedding, neighbours))
    if (
        first.scores is not None
        and second.scores is not None
        and first.scores.shape == second.scores.shape
    ):
        parts.append((first.scores.argmax(1) == second.scores.argmax(1)).astype(np.float64))
    return np.asarray(np.mean(parts, axis=0)) if parts else np.zeros(0)


def _changed(feed: Tensors, way: Counterfactual, contract: EncoderContract) -> Tensors:
    """The feed with one tensor changed, and masks cut to its new length."""
    changed = way.change(feed[way.tensor])
    length = changed.shape[-1]
    cut = changed.shape != feed[way.tensor].shape
    masks = {spec.name for spec in contract.inputs if spec.meaning is Meaning.ATTENTION_MASK}
    return {
        name: changed
        if name == way.tensor
        else np.ascontiguousarray(value[..., :length])
        if cut and name in masks
        else value
        for name, value in feed.items()
    }
