"""What two versions' preprocessings do differently to the same raw items, from their tensors.

Pictures are fitted onto each other: which order of channels, which factor and offset of each,
and what neither explains (another crop or resize). Sounds and token ids likewise, in their terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from services.compatibility.bootstrap import estimate_share
from services.compatibility.compare import Feeds
from services.compatibility.conventions import (
    STANDARDISATIONS,
    Standardisation,
    are_alike,
    declared_standardisation,
)
from validators.compatibility.preprocessing import TensorDifference
from validators.contracts.encoder import EncoderContract
from validators.contracts.ports import Tensors
from validators.contracts.tensors import Meaning, TensorSpec

Array = npt.NDArray[Any]

GRID = 32
"""Pictures of different sizes are compared as means over so many fields a side, at most."""

_UNEXPLAINED = 0.02
"""Share of a picture's variance that rounding and resampling may leave unexplained."""

_CHANGED = 0.02
"""Of the span: a factor or offset nearer than this is no other standardisation."""


def compare_inputs(
    old: EncoderContract,
    new: EncoderContract,
    feeds: Sequence[Feeds],
    *,
    lowered: Sequence[Tensors] = (),
) -> tuple[TensorDifference, ...]:
    """Named differences, by input tensor; none where the tensors are the same.

    `lowered`: the old version's tensors of the same texts in lower case, where they are texts.
    """
    kept = {spec.name: spec for spec in new.inputs}
    found = list[TensorDifference]()
    for spec in old.inputs:
        other = kept.get(spec.name)
        if other is None or other.meaning is not spec.meaning or not feeds:
            continue
        pairs = [(one[spec.name], two[spec.name]) for one, two in feeds]
        if spec.meaning is Meaning.PIXELS:
            found += _pictures(spec, other, old, pairs)
        elif spec.meaning in (Meaning.MEL, Meaning.WAVEFORM):
            found += _sounds(spec, pairs)
        elif spec.meaning is Meaning.TOKEN_IDS:
            found += _token_ids(spec, pairs, [item[spec.name] for item in lowered])
    return tuple(found)


def _pictures(
    spec: TensorSpec, other: TensorSpec, old: EncoderContract, pairs: Sequence[tuple[Array, Array]]
) -> Iterator[TensorDifference]:
    layouts = _channels_first(pairs[0][0]), _channels_first(pairs[0][1])
    if None in layouts:
        return
    if layouts[0] != layouts[1]:
        yield _every(spec, "layout", "channels stand last in one of them (NHWC, NCHW)", len(pairs))
    images = [
        (_planes(before, bool(layouts[0])), _planes(after, bool(layouts[1])))
        for before, after in pairs
    ]
    if images[0][0].shape != images[0][1].shape:
        sizes = " and ".join("x".join(map(str, item.shape[1:])) for item in images[0])
        yield _every(spec, "size", f"another size, {sizes} pixels", len(pairs))
        side = max(min(GRID, *(size // 2 for item in images[0] for size in item.shape[1:])), 1)
        images = [(_shrunk(before, side), _shrunk(after, side)) for before, after in images]
    order, moved = _channel_order(images)
    if order != (0, 1, 2):
        says = "in reverse order (RGB ↔ BGR)" if order == (2, 1, 0) else f"in the order {order}"
        yield TensorDifference(spec.name, "channels", f"the channels are {says}", moved)
    straight = [(before[list(order)], after) for before, after in images]
    left = np.array([_unexplained(before, after) for before, after in straight])
    alike = [pair for pair, rest in zip(straight, left, strict=True) if rest <= _UNEXPLAINED]
    if len(alike) < len(images):
        share = estimate_share((left > _UNEXPLAINED).astype(np.float64))
        yield TensorDifference(spec.name, "fit", "cropped or resized differently", share)
    if not alike:
        return
    factor, offset = _fit(alike)
    declared = declared_standardisation(spec, old.preprocess)
    span = 255.0 / np.array(declared.scale)[list(order)]
    if np.any(np.abs(factor - 1) > _CHANGED) or np.any(np.abs(offset) > _CHANGED * span):
        says = _standardisation(declared, order, factor, offset)
        yield _every(spec, "standardised", says, len(pairs))


def _standardisation(
    declared: Standardisation, order: tuple[int, ...], factor: Array, offset: Array
) -> str:
    """The new mean and scale, in red, green, blue order, by name where they have one."""
    places = list(order)
    old_mean, old_scale = np.array(declared.mean)[places], np.array(declared.scale)[places]
    scale = old_scale / np.where(np.abs(factor) > 1e-9, factor, 1e-9)
    mean = old_mean - offset * scale
    back = np.argsort(places)
    mean, scale = mean[back], scale[back]
    found = Standardisation("found", _three(mean), _three(np.abs(scale)))
    named = [item.name for item in STANDARDISATIONS if are_alike(found, item)]
    before = [item.name for item in STANDARDISATIONS if are_alike(declared, item)]
    text = " or ".join(named) or f"mean {_written(mean)}, scale {_written(scale)}"
    return f"standardised otherwise: it looks like {text} against {' or '.join(before) or 'others'}"


def _channel_order(
    images: Sequence[tuple[Array, Array]],
) -> tuple[tuple[int, ...], Any]:
    """The order that explains most, if it does so on most pictures that have colours."""
    straight = (0, 1, 2)
    left = {
        order: np.array([_unexplained(before[list(order)], after) for before, after in images])
        for order in permutations(straight)
    }
    every = np.stack(list(left.values()))
    coloured = np.ptp(every, axis=0) > 1e-4
    best = min(left, key=lambda order: float(left[order].mean()))
    better = (left[best] < 0.5 * left[straight])[coloured]
    share = estimate_share(better.astype(np.float64))
    return (best, share) if share.low > 0.5 else (straight, share)


def _unexplained(before: Array, after: Array) -> float:
    """The share of the new picture's variance that no factor and offset per channel explain."""
    x, y = before.reshape(len(before), -1), after.reshape(len(after), -1)
    x, y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    total = float((y * y).sum())
    if total <= 1e-9 * y.size:
        return 0.0  # one colour says nothing
    spread = (x * x).sum(1)
    explained = np.where(spread > 1e-12, (x * y).sum(1) ** 2 / np.maximum(spread, 1e-12), 0.0)
    return max(1.0 - float(explained.sum()) / total, 0.0)


def _fit(images: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Factor and offset of each channel over all pictures, least squares, [3] and [3]."""
    x = np.concatenate([before.reshape(len(before), -1) for before, _ in images], axis=1)
    y = np.concatenate([after.reshape(len(after), -1) for _, after in images], axis=1)
    mean_x, mean_y = x.mean(1), y.mean(1)
    x, y = x - mean_x[:, None], y - mean_y[:, None]
    spread = (x * x).sum(1)
    factor = np.where(spread > 1e-12, (x * y).sum(1) / np.maximum(spread, 1e-12), 1.0)
    return factor, mean_y - factor * mean_x


def _channels_first(tensor: Array) -> bool | None:
    """True for [1, 3, H, W], False for [1, H, W, 3], None for neither."""
    if tensor.ndim != 4:
        return None
    if tensor.shape[1] == 3:
        return True
    return False if tensor.shape[3] == 3 else None


def _planes(tensor: Array, channels_first: bool) -> Array:
    """[3, H, W]."""
    image = tensor[0] if channels_first else tensor[0].transpose(2, 0, 1)
    return np.asarray(image, np.float64)


def _shrunk(planes: Array, side: int) -> Array:
    box = Image.Resampling.BOX
    return np.stack([
        np.asarray(Image.fromarray(plane.astype(np.float32)).resize((side, side), box), np.float64)
        for plane in planes
    ])  # fmt: skip


def _sounds(spec: TensorSpec, pairs: Sequence[tuple[Array, Array]]) -> Iterator[TensorDifference]:
    lengths = np.array([after.shape[-1] / before.shape[-1] for before, after in pairs])
    if np.any(np.abs(lengths - 1) > _CHANGED):
        rate = f"{float(np.median(lengths)):.3g} times as many values for the same sound"
        what = "another sample rate" if spec.meaning is Meaning.WAVEFORM else "another frame rate"
        yield _every(spec, "rate", f"{what}: {rate}", len(pairs))
        return
    if any(before.shape != after.shape for before, after in pairs):
        yield _every(spec, "bands", "another number of mel bands", len(pairs))
        return
    flat = [(before.reshape(1, -1).astype(np.float64), after.reshape(1, -1).astype(np.float64))
            for before, after in pairs]  # fmt: skip
    factor, offset = (float(item[0]) for item in _fit(flat))
    span = float(np.median([np.ptp(before) for before, _ in flat]))
    if abs(factor - 1) > _CHANGED or abs(offset) > _CHANGED * max(span, 1e-12):
        yield _every(
            spec, "gain", f"values are {factor:.4g} x {offset:+.4g} of the old", len(pairs)
        )


def _token_ids(
    spec: TensorSpec, pairs: Sequence[tuple[Array, Array]], lowered: Sequence[Array]
) -> Iterator[TensorDifference]:
    rows = [(before.ravel().tolist(), after.ravel().tolist()) for before, after in pairs]
    differ = np.array([before != after for before, after in rows])
    if not differ.any():
        return
    tests = {
        ("special-tokens", "special tokens are missing at the ends"): [
            after == before[1:-1] for before, after in rows
        ],
        ("special-tokens", "special tokens are added at the ends"): [
            before == after[1:-1] for before, after in rows
        ],
        ("length", "texts are cut at another length"): [_is_cut(*row) for row in rows],
        ("case", "texts are put into lower case"): [
            after == low.ravel().tolist() for (_, after), low in zip(rows, lowered, strict=False)
        ],
    }
    named = False
    for (code, says), hits in tests.items():
        explained = np.array(hits, bool)[: len(differ)] & differ[: len(hits)]
        if explained.sum() > 0.5 * differ.sum():
            named = True
            yield TensorDifference(spec.name, code, says, _share(explained))
    if not named:
        yield TensorDifference(spec.name, "tokens", "another tokenizer", _share(differ))


def _is_cut(before: list[int], after: list[int]) -> bool:
    """Whether the shorter is the start of the longer, but for a last special token."""
    shorter, longer = sorted((before, after), key=len)
    body = shorter[:-1] if shorter[-1] == longer[-1] else shorter
    return len(shorter) < len(longer) and len(body) > 1 and longer[: len(body)] == body


def _every(spec: TensorSpec, code: str, says: str, items: int) -> TensorDifference:
    return TensorDifference(spec.name, code, says, _share(np.ones(items, bool)))


def _share(hits: Array) -> Any:
    return estimate_share(hits.astype(np.float64))


def _three(values: Array) -> tuple[float, float, float]:
    red, green, blue = (float(value) for value in values)
    return red, green, blue


def _written(values: Array) -> str:
    return ", ".join(f"{float(value):.4g}" for value in values)
