"""Feeds a version what other conventions would have made of the same items, and compares.

The weights say what they expect by what they answer: a version that was trained on channels in
reverse order agrees with its predecessor only where it is given them so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.compatibility.bootstrap import estimate_mean, estimate_share
from services.compatibility.compare import EncoderVersion, Feeds
from services.compatibility.conventions import Counterfactual, counterfactuals_of
from services.compatibility.geometry import neighbour_overlap, neighbours_of
from validators.compatibility.estimates import Estimate
from validators.compatibility.preprocessing import InputCheck, InputSettings, TriedInput
from validators.contracts.encoder import EncoderContract
from validators.contracts.errors import BadInput
from validators.contracts.ports import Tensors
from validators.contracts.tensors import Meaning

Array = npt.NDArray[Any]

MAX_ITEMS = 48
"""Items that every way is tried on; more are thinned evenly."""

_ALPHA = 0.05
_AGREEMENTS = 2  # either of which may accuse
_TIE = 1e-9  # of cosines: an item that occurs twice finds both


@dataclass(frozen=True, slots=True)
class _Answers:
    """What one version answered: an embedding [N, D], class scores [N, C], where it has them."""

    embedding: Array | None
    scores: Array | None
    space: str | None = None  # that the embedding lives in

    def finite(self) -> bool:
        parts = [item for item in (self.embedding, self.scores) if item is not None]
        return bool(parts) and all(np.isfinite(item).all() for item in parts)

    @property
    def confidence(self) -> Array | None:
        """[N]: the largest class probability of each item."""
        if self.scores is None:
            return None
        shifted = np.exp(self.scores - self.scores.max(axis=1, keepdims=True))
        return np.asarray(shifted.max(axis=1) / shifted.sum(axis=1))


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
    declared = estimate_share(_agreement(before, after) if comparable else np.zeros(0))
    near = _nearness(before, after) if comparable else None
    vectors = None if near is None else estimate_share(near)
    ways = counterfactuals_of(new.contract)
    plain = InputCheck(name, items, declared, (), vectors=vectors)
    if not comparable or plain.is_fine(limits) or items < limits.least_items or not ways:
        return plain
    changed = _try(new, news, ways, _Pair(before, after, other_is_old=True))
    able = [
        item.code
        for item in changed
        for gain in (item.gain, item.vectors_gain)
        if gain is not None and gain.low > limits.gain
    ]
    back = [way for way in counterfactuals_of(old.contract) if way.code in able]
    reverted = _try(old, olds, back, _Pair(after, before, other_is_old=False))
    return InputCheck(name, items, declared, changed, reverted, vectors)


@dataclass(frozen=True, slots=True)
class _Pair:
    """The version that stays as it is, and the one that is fed otherwise, as declared."""

    other: _Answers
    declared: _Answers
    other_is_old: bool

    def agreements(self, answers: _Answers) -> tuple[Array, Array | None]:
        ends = (self.other, answers) if self.other_is_old else (answers, self.other)
        return _agreement(*ends), _nearness(*ends)

    def tried(self, way: Counterfactual, answers: _Answers, alpha: float) -> TriedInput:
        now, near_now = self.agreements(self.declared)
        agreement, near = self.agreements(answers)
        sure, sure_now = answers.confidence, self.declared.confidence
        return TriedInput(
            way.code,
            way.says,
            way.remedy,
            estimate_share(agreement),
            estimate_mean(agreement - now, alpha),
            surer=_gain(sure, sure_now, alpha),
            vectors=None if near is None else estimate_share(near),
            vectors_gain=_gain(near, near_now, alpha),
        )


def _gain(so_fed: Array | None, declared: Array | None, alpha: float) -> Estimate | None:
    if so_fed is None or declared is None:
        return None
    return estimate_mean(so_fed - declared, alpha)


def _try(
    version: EncoderVersion, feeds: Sequence[Tensors], ways: Sequence[Counterfactual], pair: _Pair
) -> tuple[TriedInput, ...]:
    found = []
    for way in ways:
        try:
            answers = _run(version, [_changed(feed, way, version.contract) for feed in feeds])
        except BadInput:
            continue  # this engine takes no such input
        if answers.finite():
            found.append(pair.tried(way, answers, _ALPHA / len(ways) / _AGREEMENTS))
    return tuple(found)


def _run(version: EncoderVersion, feeds: Sequence[Tensors]) -> _Answers:
    outputs = version.contract.outputs
    spec = next((s for s in outputs if s.meaning is Meaning.GLOBAL_EMBEDDING), None)
    embedding = spec.name if spec else None
    scores = next((s.name for s in outputs if s.meaning is Meaning.LOGITS), None)
    rows: dict[str, list[Array]] = {name: [] for name in (embedding, scores) if name}
    for feed in feeds:
        answer = version.engine.run(feed)
        for name, found in rows.items():
            found.append(answer[name].reshape(len(answer[name]), -1).astype(np.float64))
    stacked = {name: np.concatenate(found) for name, found in rows.items() if found}
    return _Answers(
        stacked.get(embedding) if embedding else None,
        stacked.get(scores) if scores else None,
        spec.space if spec else None,
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


def _nearness(old: _Answers, new: _Answers) -> Array | None:
    """[N] within 0..1: the cosine of an item's two vectors, 0 where another old one is nearer.

    None unless both versions promise the same space: elsewhere vectors are not comparable.
    """
    if old.embedding is None or new.embedding is None or old.space != new.space:
        return None
    if old.embedding.shape != new.embedding.shape:
        return None
    before, after = (
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        for rows in (old.embedding, new.embedding)
    )
    cosines = after @ before.T
    own = cosines.diagonal()
    return np.where(own >= cosines.max(axis=1) - _TIE, np.clip(own, 0, 1), 0.0)


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
