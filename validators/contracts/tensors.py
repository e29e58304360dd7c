"""What a tensor is: type, named symbolic dimensions, meaning, time base.

Type names are those of the Open Inference Protocol; a dimension is a number or a name, and one
name has one value within a request.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from validators.contracts.errors import BadInput

Dim = int | str


class DType(enum.Enum):
    """Open Inference Protocol datatypes (plus BF16, as Triton extends them)."""

    BOOL = "BOOL"
    UINT8 = "UINT8"
    INT8 = "INT8"
    INT32 = "INT32"
    INT64 = "INT64"
    FP16 = "FP16"
    BF16 = "BF16"
    FP32 = "FP32"
    FP64 = "FP64"
    BYTES = "BYTES"


class Meaning(enum.Enum):
    """What the numbers stand for; two tensors connect only where these agree."""

    PIXELS = "pixels"
    MEL = "mel"
    WAVEFORM = "waveform"
    TOKEN_IDS = "token_ids"
    ATTENTION_MASK = "attention_mask"
    PATCH_FEATURES = "patch_features"
    FRAME_FEATURES = "frame_features"
    TOKEN_FEATURES = "token_features"
    GLOBAL_EMBEDDING = "global_embedding"
    LOGITS = "logits"
    SCORES = "scores"
    CACHE = "cache"


class StateKind(enum.Enum):
    """What an encoder remembers between calls."""

    STATELESS = "stateless"
    AUTOREGRESSIVE_CACHE = "autoregressive_cache"
    CROSS_MODAL_CACHE = "cross_modal_cache"


@dataclass(frozen=True, slots=True)
class TimeBase:
    """The rate of a time dimension: index `i` stands at `offset_ms + 1000 * i / rate_hz`."""

    dim: str
    rate_hz: float
    offset_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One named tensor of a contract.

    `space` names the embedding space of a GLOBAL_EMBEDDING (vectors of two spaces never compare).
    `value_range` is the closed range that inputs stay in after preprocessing.
    """

    name: str
    dtype: DType
    shape: tuple[Dim, ...]
    meaning: Meaning
    space: str | None = None
    time_base: TimeBase | None = None
    value_range: tuple[float, float] | None = None

    def describe(self) -> str:
        """For messages: `pixels FP32 [batch, 3, 224, 224] (pixels)`."""
        dims = ", ".join(str(dim) for dim in self.shape)
        return f"{self.name} {self.dtype.value} [{dims}] ({self.meaning.value})"


def bind_shape(
    spec: TensorSpec, shape: Sequence[int], bound: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Match a concrete shape against the spec; the symbolic dims' values, joined with `bound`.

    Raises:
        BadInput: rank, a size below 1, a fixed dimension, or a name bound to another value.
    """
    dims = dict(bound or {})
    if len(shape) != len(spec.shape):
        raise BadInput(
            f"tensor {spec.name} has rank {len(shape)}, its contract says {len(spec.shape)}",
            where=spec.describe(),
            remedy="Send the shape of the contract.",
        )
    for position, (dim, size) in enumerate(zip(spec.shape, shape, strict=True)):
        if size < 1:
            raise BadInput(
                f"dimension {position} ({dim}) of tensor {spec.name} is {size}, not 1 or more",
                where=spec.describe(),
                remedy="Send at least one item.",
            )
        expected = dim if isinstance(dim, int) else dims.setdefault(dim, size)
        if size != expected:
            raise BadInput(
                f"dimension {position} ({dim}) of tensor {spec.name} is {size}, not {expected}",
                where=spec.describe(),
                remedy="Send the shape of the contract.",
            )
    return dims
