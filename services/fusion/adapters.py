"""Adapters: from an encoder's output into a common embedding space, kept as safetensors.

- `ridge`: linear map learned on pairs; {weight [in, out], bias [out]}.
- `conse`: convex combination of class-name vectors weighted by the classifier's probabilities, no
  training needed ("Zero-Shot Learning by Convex Combination of Semantic Embeddings", Norouzi et
  al., 2014); {class_vectors [classes, D]}; options `top` and `temperature`.
- `identity`: the encoder speaks the common space already; no file.

An entry of kind `auto` takes what the file holds. Vectors come out with norm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors
from safetensors import numpy as tensors_file

from validators.contracts.errors import BadInput, Refused, TooLarge, Unsupported
from validators.contracts.pipeline import AdapterEntry

Array = npt.NDArray[Any]
Vectors = npt.NDArray[np.float32]
Adapter = Callable[[Array], Vectors]
"""Encoder outputs [B, in] → unit vectors [B, D]."""

MAX_ADAPTER_BYTES = 256 * 1024 * 1024
DEFAULT_TOP = 10
ALPHAS = tuple(10.0**step for step in range(-6, 4))
"""Candidates of the ridge penalty, as multiples of the mean squared singular value."""

_KIND_OF_FILE = {frozenset({"weight", "bias"}): "ridge", frozenset({"class_vectors"}): "conse"}


def load_adapter(entry: AdapterEntry, data: bytes | None) -> Adapter:
    """The adapter of a pipeline's entry, with the file that goes with it (None for identity).

    The adapter raises BadInput where its input has another width or is not finite.

    Raises:
        Refused: a file of another kind, ill-shaped, not finite, or none where one is needed.
        Unsupported: an unknown kind.  BadInput: an ill-typed option.
    """
    if entry.kind == "identity":
        return _checked(to_unit, None)
    if entry.kind not in ("ridge", "conse", "auto"):
        raise Unsupported(
            f"there is no adapter of kind {entry.kind!r}",
            where="adapter.kind",
            remedy="Write ridge, conse, identity or auto.",
        )
    tensors = _read(entry, data)
    if "weight" in tensors:
        return _ridge(tensors["weight"], tensors["bias"])
    return _conse(tensors["class_vectors"], entry)


def adapter_kind(data: bytes) -> str:
    """`ridge` or `conse`, by what the file holds.

    Raises:
        Refused: not an adapter file.
    """
    return _kind(_tensors(data))


def fit_ridge(features: Array, targets: Array, alpha: float | None = None) -> bytes:
    """The least-squares map features [N, in] → targets [N, D] with an L2 penalty, as a file.

    Without `alpha` the penalty is the candidate of ALPHAS with the least leave-one-out error, in
    closed form from the hat matrix (PRESS; Allen, 1974). The same pairs give the same bytes.

    Raises:
        BadInput: fewer than three pairs, lengths that differ, numbers that are not finite.
    """
    x, y = _pairs(features, targets)
    x_mean, y_mean = x.mean(0), y.mean(0)
    left, spread, right = np.linalg.svd(x - x_mean, full_matrices=False)
    projected = left.T @ (y - y_mean)
    unit = float((spread**2).mean()) or 1.0
    if alpha is None:
        errors = [_press(left, spread, projected, y - y_mean, step * unit) for step in ALPHAS]
        alpha = ALPHAS[int(np.argmin(errors))]
    shrunk = spread / (spread**2 + alpha * unit)
    weight = (right.T * shrunk) @ projected
    bias = y_mean - x_mean @ weight
    return tensors_file.save({"weight": _float32(weight), "bias": _float32(bias)})


def fit_conse(class_vectors: Array) -> bytes:
    """The vectors [classes, D] of the classifier's class names, in its order, as a file."""
    if class_vectors.ndim != 2 or not class_vectors.size or not np.isfinite(class_vectors).all():
        raise BadInput(
            "class vectors have to be a finite matrix [classes, D]", where="class_vectors"
        )
    return tensors_file.save({"class_vectors": _float32(to_unit(class_vectors))})


def to_unit(vectors: Array) -> Vectors:
    """The rows with norm 1; a row of zeros stays one."""
    rows = np.asarray(vectors, dtype=np.float32)
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    unit: Vectors = rows / np.maximum(norms, 1e-12)
    return unit


def _ridge(weight: Array, bias: Array) -> Adapter:
    return _checked(lambda features: to_unit(features @ weight + bias), weight.shape[0])


def _conse(class_vectors: Array, entry: AdapterEntry) -> Adapter:
    options = dict(entry.options)
    top = options.get("top", min(DEFAULT_TOP, len(class_vectors)))
    temperature = options.get("temperature", 1.0)
    if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= len(class_vectors):
        raise BadInput(
            f"option top of a conse adapter is {top!r}",
            where="adapter.options.top",
            remedy=f"Write a whole number from 1 to {len(class_vectors)}.",
        )
    if isinstance(temperature, bool | str) or not 0 < temperature < np.inf:
        raise BadInput(
            f"option temperature of a conse adapter is {temperature!r}",
            where="adapter.options.temperature",
            remedy="Write a number above 0.",
        )
    count, heat = top, float(temperature)

    def combine(logits: Array) -> Vectors:
        scaled = logits.astype(np.float32) / heat
        # The stable sort settles ties by class number: the same scores give the same vector.
        best = np.argsort(-scaled, axis=1, kind="stable")[:, :count]
        chosen = np.take_along_axis(scaled, best, axis=1)
        shares = np.exp(chosen - chosen.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return to_unit(np.einsum("bk,bkd->bd", shares, class_vectors[best]))

    return _checked(combine, len(class_vectors))


def _checked(apply: Adapter, width: int | None) -> Adapter:
    def adapter(values: Array) -> Vectors:
        if values.ndim != 2 or (width is not None and values.shape[1] != width):
            raise BadInput(
                f"an adapter for [batch, {width or 'D'}] was given {list(values.shape)}",
                where="adapter",
                remedy="Give it the encoder output that it was fitted on.",
            )
        if not np.isfinite(values).all():
            broken = int(np.count_nonzero(~np.isfinite(values).all(axis=1)))
            raise BadInput(
                f"the encoder's output is not finite in {broken} of {len(values)} rows",
                where="adapter",
                remedy="Compare the encoder's precisions layer by layer, and mend what overflows.",
            )
        return apply(values)

    return adapter


def _read(entry: AdapterEntry, data: bytes | None) -> dict[str, Array]:
    if data is None:
        raise Refused(
            f"the {entry.kind} adapter into {entry.space} has no file",
            where="adapter",
            remedy="Release again: the file is made by the training step.",
        )
    tensors = _tensors(data)
    kind = _kind(tensors)
    if entry.kind not in (kind, "auto"):
        raise Refused(f"an adapter of kind {entry.kind} was given a {kind} file", where="adapter")
    return tensors


def _tensors(data: bytes) -> dict[str, Array]:
    if len(data) > MAX_ADAPTER_BYTES:
        raise TooLarge(f"an adapter of {len(data)} bytes is too large", where="adapter")
    try:
        tensors: dict[str, Array] = tensors_file.load(data)
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise Refused("the adapter is not a safetensors file", where="adapter") from error
    return tensors


def _kind(tensors: dict[str, Array]) -> str:
    kind = _KIND_OF_FILE.get(frozenset(tensors))
    if kind is None:
        raise Refused(f"an adapter file holds {sorted(tensors)[:4]}", where="adapter")
    matrix = tensors["weight"] if kind == "ridge" else tensors["class_vectors"]
    sound = all(item.dtype == np.float32 and np.isfinite(item).all() for item in tensors.values())
    if not sound or matrix.ndim != 2 or 0 in matrix.shape:
        raise Refused("the adapter's tensors are ill-shaped or not finite float32", where="adapter")
    if kind == "ridge" and tensors["bias"].shape != (matrix.shape[1],):
        raise Refused("the adapter's bias does not fit its weight", where="adapter")
    return kind


def _pairs(features: Array, targets: Array) -> tuple[Array, Array]:
    x, y = np.asarray(features, np.float64), np.asarray(targets, np.float64)
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y) or len(x) < 3:
        raise BadInput(
            f"a ridge map needs pairs, not {list(x.shape)} and {list(y.shape)}",
            where="pairs",
            remedy="Give matrices [N, in] and [N, D] with N of 3 or more.",
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise BadInput("the pairs hold NaN or infinity", where="pairs")
    return x, y


def _press(left: Array, spread: Array, projected: Array, y: Array, penalty: float) -> float:
    """Mean squared leave-one-out error of the centred fit; the mean counts as one parameter."""
    kept = spread**2 / (spread**2 + penalty)
    residual = y - left @ (kept[:, None] * projected)
    leverage = (left**2) @ kept + 1.0 / len(y)
    return float(((residual / np.maximum(1.0 - leverage, 1e-6)[:, None]) ** 2).mean())


def _float32(values: Array) -> Vectors:
    return np.ascontiguousarray(values, dtype=np.float32)
