"""Bring a request's tensors to a profile's shape, and its outputs back: padding that is masked.

Every named dimension is padded at its end. A dimension may be padded only where an attention mask
runs along it (its new positions get 0), where it is the batch, or where the caller declares that
the model ignores what is beyond: otherwise padding would change results. New rows of a batch repeat
the first row, so that they compute what a real row computes: no mask of zeros only, no NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from services.engines.profiles.assign import Serve, Split
from services.engines.profiles.bounds import bind_dims, symbolic_dims
from services.engines.tensors import Arrays, picked
from validators.contracts.errors import BadInput, TooLarge, Unsupported
from validators.contracts.ports import Tensors
from validators.contracts.tensors import DType, Meaning, TensorSpec

MAX_PADDED_BYTES = 512 * 1024 * 1024

Run = Callable[[Tensors], Tensors]


@dataclass(frozen=True, slots=True)
class Padder:
    """How one contract's tensors are padded, cut, split and joined.

    `ignored` names dimensions whose padding the model is declared not to look at, or to be right
    with zeros in.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    batch_dim: str = "batch"
    ignored: frozenset[str] = frozenset()

    @property
    def paddable(self) -> frozenset[str]:
        """The dimensions whose padding does not change results."""
        batched = all(self.batch_dim in spec.shape for spec in self.outputs)
        return self.cuttable | self.ignored | ({self.batch_dim} if batched else set())

    @property
    def cuttable(self) -> frozenset[str]:
        """The dimensions whose end may be dropped by a policy that allows it.

        A mask runs along them, and none that hides in a way which zeros would undo.
        """
        masks = [spec for spec in self.inputs if spec.meaning is Meaning.ATTENTION_MASK]
        hidden = {dim for spec in masks if _is_mask(spec) for dim in spec.shape}
        strange = {dim for spec in masks if not _is_mask(spec) for dim in spec.shape}
        dims = hidden - strange - {self.batch_dim}
        return frozenset(dim for dim in dims if isinstance(dim, str))

    def pad(self, feeds: Tensors, sizes: Mapping[str, int]) -> Arrays:
        """The feeds at these sizes of the named dimensions.

        Raises:
            BadInput: feeds that contradict the contract or are larger than the sizes.
            Unsupported: a dimension that is not `paddable` would grow, or one other than the batch
                while an output has a dimension of its own, which could not be cut back.
            TooLarge: the result is over MAX_PADDED_BYTES.
        """
        own = bind_dims(self.inputs, {name: array.shape for name, array in feeds.items()})
        for name, size in own.items():
            self._check_growth(name, size, sizes.get(name, size))
        self._check_bytes(feeds, sizes)
        return {spec.name: self._padded(spec, feeds[spec.name], sizes) for spec in self.inputs}

    def cut(self, outputs: Tensors, sizes: Mapping[str, int]) -> Arrays:
        """The outputs cut back to the request's own sizes, each an array of its own."""
        own = {}
        for spec in self.outputs:
            whole = outputs[spec.name]
            part = whole[
                tuple(slice(sizes.get(dim) if isinstance(dim, str) else None) for dim in spec.shape)
            ]
            own[spec.name] = whole if part.shape == whole.shape else part.copy()
        return own

    def shorten(self, feeds: Tensors, sizes: Mapping[str, int]) -> tuple[Arrays, bool]:
        """The feeds without what is beyond these sizes, and whether anything was lost by that.

        Nothing is where the masks hide all that is dropped and no output has the dimension.

        Raises:
            Unsupported: nothing that a mask keeps is left of a row (it was padded at its front).
        """
        kept = {}
        lost = any(dim in spec.shape for spec in self.outputs for dim in sizes)
        for spec in self.inputs:
            array = feeds[spec.name]
            kept[spec.name] = np.ascontiguousarray(
                array[tuple(slice(sizes.get(dim) if isinstance(dim, str) else None)
                            for dim in spec.shape)]
            )  # fmt: skip
            if _is_mask(spec) and any(dim in sizes for dim in spec.shape):
                hidden = np.count_nonzero(array) == np.count_nonzero(kept[spec.name])
                lost = lost or not hidden
                if (self._heard(spec, array) & ~self._heard(spec, kept[spec.name])).any():
                    raise Unsupported(
                        "cutting the end would leave nothing of a row: it is padded at its front",
                        where=spec.describe(),
                        remedy="Put the padding behind the tokens, or send a shorter sequence.",
                    )
        return kept, lost

    def split(self, feeds: Tensors, rows: Sequence[int]) -> list[Arrays]:
        """The feeds in parts of so many rows; a tensor without a batch goes whole into each.

        Raises:
            BadInput: the rows do not add up to the batch.
        """
        own = bind_dims(self.inputs, {name: array.shape for name, array in feeds.items()})
        if sum(rows) != own.get(self.batch_dim) or min(rows, default=0) < 1:
            raise BadInput(
                f"parts of {list(rows)} rows do not make a batch of {own.get(self.batch_dim)}",
                remedy="Split into parts that add up to the batch.",
            )
        ends = np.cumsum(rows).tolist()
        return [
            picked({spec.name: self._taken(spec, feeds[spec.name], end - count, end)
                    for spec in self.inputs}, self.inputs)
            for count, end in zip(rows, ends, strict=True)
        ]  # fmt: skip

    def join(self, parts: Sequence[Tensors]) -> Arrays:
        """The outputs of parts as those of the whole batch.

        Raises:
            Unsupported: an output has no batch dimension, so parts of it do not make a whole.
        """
        joined: Arrays = {}
        for spec in self.outputs:
            if self.batch_dim not in spec.shape:
                raise Unsupported(
                    f"output {spec.name} has no dimension {self.batch_dim}",
                    where=spec.describe(),
                    remedy="Do not split batches of this encoder.",
                )
            axis = spec.shape.index(self.batch_dim)
            joined[spec.name] = np.concatenate([part[spec.name] for part in parts], axis=axis)
        return joined

    def run(self, decision: Serve | Split, feeds: Tensors, run: Run) -> Arrays:
        """Run a request as it was assigned; `run` is the engine, called once per part."""
        if isinstance(decision, Serve):
            own = bind_dims(self.inputs, {name: array.shape for name, array in feeds.items()})
            return self.cut(run(self.pad(feeds, dict(decision.sizes))), own)
        pieces = self.split(feeds, [part.rows for part in decision.parts])
        return self.join([
            self.run(part.serve, piece, run)
            for part, piece in zip(decision.parts, pieces, strict=True)
        ])  # fmt: skip

    def _check_growth(self, name: str, size: int, target: int) -> None:
        if target < size:
            raise BadInput(
                f"dimension {name} is {size}, over the {target} it is padded to",
                remedy="Assign the request to a profile that covers it.",
            )
        if target > size and name not in self.paddable:
            raise Unsupported(
                f"padding dimension {name} would change results: no mask runs along it",
                where=name,
                remedy="Give the model a mask input, or declare the dimension ignored.",
            )

        own = set(symbolic_dims(self.inputs))
        derived = [dim for dim in symbolic_dims(self.outputs) if dim not in own]
        if target > size and name != self.batch_dim and derived:
            raise Unsupported(
                f"after padding {name}, outputs cannot be cut along {derived[0]}",
                where=name,
                remedy="Name the outputs' dimensions as the inputs' where they are the same.",
            )

    def _check_bytes(self, feeds: Tensors, sizes: Mapping[str, int]) -> None:
        total = sum(
            int(np.prod(_target(spec, feeds[spec.name], sizes), dtype=np.float64))
            * feeds[spec.name].itemsize
            for spec in self.inputs
        )
        if total > MAX_PADDED_BYTES:
            raise TooLarge(
                f"the padded inputs take {total >> 20} MiB, over {MAX_PADDED_BYTES >> 20} MiB",
                remedy="Lower the largest profile.",
            )

    def _padded(
        self, spec: TensorSpec, array: npt.NDArray[Any], sizes: Mapping[str, int]
    ) -> npt.NDArray[Any]:
        target = _target(spec, array, sizes)
        if target == array.shape:
            return array
        padded = np.full(target, _fill(spec), array.dtype)
        padded[tuple(slice(size) for size in array.shape)] = array
        if self.batch_dim in spec.shape:
            axis = spec.shape.index(self.batch_dim)
            rows: list[slice | int] = [slice(None)] * axis
            padded[(*rows, slice(array.shape[axis], None))] = padded[(*rows, slice(0, 1))]
        return padded

    def _heard(self, spec: TensorSpec, mask: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """[batch], or one value for all: whether the mask keeps anything of a row."""
        rest = tuple(at for at, dim in enumerate(spec.shape) if dim != self.batch_dim)
        heard: npt.NDArray[np.bool_] = np.asarray(mask.astype(bool).any(axis=rest))
        return heard

    def _taken(
        self, spec: TensorSpec, array: npt.NDArray[Any], start: int, end: int
    ) -> npt.NDArray[Any]:
        if self.batch_dim not in spec.shape:
            return array
        axis = spec.shape.index(self.batch_dim)
        return array[(*[slice(None)] * axis, slice(start, end))]


def _is_mask(spec: TensorSpec) -> bool:
    """A mask in which 0 hides a position. One that is added to scores hides by minus infinity."""
    whole = spec.dtype in (DType.BOOL, DType.UINT8, DType.INT8, DType.INT32, DType.INT64)
    return spec.meaning is Meaning.ATTENTION_MASK and (whole or spec.value_range == (0.0, 1.0))


def _target(spec: TensorSpec, array: npt.NDArray[Any], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(
        sizes.get(dim, own) if isinstance(dim, str) else own
        for dim, own in zip(spec.shape, array.shape, strict=True)
    )


def _fill(spec: TensorSpec) -> int | float:
    """0, or what is nearest to 0 in the tensor's range: a padded id has to be one of the table."""
    if spec.meaning is Meaning.ATTENTION_MASK or spec.value_range is None:
        return 0
    low, high = spec.value_range
    return min(max(0, low), high)
