"""What a compiled engine really computes its products in, told in the build log as one line.

A precision that was asked for and silently not used is worse than one that was refused.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from validators.contracts.engine import EngineSpec, Precision
from validators.contracts.errors import Unsupported

_MARK = "computed "

_TYPES: dict[Precision, frozenset[str]] = {
    Precision.FP32: frozenset({"f32"}),
    Precision.FP16: frozenset({"f16"}),
    Precision.BF16: frozenset({"bf16"}),
    Precision.INT8: frozenset({"i8", "u8"}),
    Precision.INT4: frozenset({"i4", "u4"}),
}


def share_of(products: Iterable[tuple[str, int]], precision: Precision) -> float:
    """The share of products (convolutions and matrix products) computed in this precision.

    `products` are type names ("i8", "f32") with counts; for int4, the type weights are kept in.
    """
    counts = list(products)
    total = sum(count for _, count in counts)
    fitting = sum(count for name, count in counts if name in _TYPES[precision])
    return fitting / total if total else 0.0


def report_computed(types: Iterable[str], spec: EngineSpec) -> None:
    """Print the line, one type name per product.

    Raises:
        Unsupported: not one product is computed in the spec's precision.
    """
    counts = Counter(types)
    print(_MARK + json.dumps(dict(sorted(counts.items()))), flush=True)
    if counts and share_of(counts.items(), spec.precision) == 0:
        ran = ", ".join(f"{count} in {name}" for name, count in sorted(counts.items()))
        what = {Precision.INT8: "nothing was quantised", Precision.INT4: "no weights stay packed"}
        raise Unsupported(
            f"{what.get(spec.precision, f'nothing runs in {spec.precision.value}')}: "
            f"{spec.backend} computes {ran}",
            where=spec.encoder,
            remedy="Use a precision that this backend computes, or another backend.",
        )


def read_computed(log: bytes) -> tuple[tuple[str, int], ...]:
    """The products of a build by type, from its log; empty where the backend does not tell."""
    for line in log.decode(errors="replace").splitlines():
        if line.startswith(_MARK):
            return tuple(sorted(json.loads(line.removeprefix(_MARK)).items()))
    return ()
