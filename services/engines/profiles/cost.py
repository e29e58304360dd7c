"""What a shape costs: work and memory, as sums of products of powers of the named dimensions.

A request is served at its profile's largest shape, so what it costs beyond its own is padded work.
Units of work are arbitrary: only ratios matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from validators.contracts.errors import BadInput

Sizes = npt.NDArray[np.int64]  # [n, dims]
Amounts = npt.NDArray[np.float64]  # [n]


@dataclass(frozen=True, slots=True)
class Term:
    """`coefficient` times the product of the dimensions to their exponents."""

    coefficient: float
    exponents: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class ShapeFormula:
    """A sum of terms that never falls when a dimension grows (planning relies on it)."""

    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        numbers = [(term.coefficient, *(power for _, power in term.exponents))
                   for term in self.terms]  # fmt: skip
        rising = all(
            0 < coefficient < math.inf and all(0 <= power <= 8 for power in powers)
            for coefficient, *powers in numbers
        )
        if not self.terms or not rising:
            raise BadInput(
                "a shape formula has to grow with every dimension",
                remedy="Give terms with positive coefficients and exponents from 0 to 8.",
            )

    def over(self, dims: Sequence[str], sizes: Sizes) -> Amounts:
        """The amount for each row of sizes, whose columns are `dims`.

        Raises:
            BadInput: a term names a dimension that is not among them.
        """
        columns = {name: sizes[:, index].astype(np.float64) for index, name in enumerate(dims)}
        total = np.zeros(len(sizes))
        for term in self.terms:
            amount = np.full(len(sizes), float(term.coefficient))
            for name, power in term.exponents:
                if name not in columns:
                    raise BadInput(
                        f"a shape formula names {name!r}, which is no recorded dimension",
                        remedy="Use: " + ", ".join(dims) + ".",
                    )
                amount *= columns[name] ** power
            total += amount
        return total

    def at(self, sizes: Mapping[str, int]) -> float:
        """The amount for one shape."""
        row = np.array([list(sizes.values())], np.int64)
        return float(self.over(tuple(sizes), row)[0])


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """Bytes that a profile holds: fixed ones, and some per element at its largest shape."""

    elements: ShapeFormula
    bytes_per_element: float
    fixed_bytes: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.bytes_per_element < math.inf and self.fixed_bytes >= 0):
            raise BadInput(
                f"{self.bytes_per_element} bytes per element and {self.fixed_bytes} fixed bytes "
                "are no memory model",
                remedy="Give a positive number of bytes per element.",
            )

    def over(self, dims: Sequence[str], sizes: Sizes) -> Amounts:
        """Bytes, rounded up, for each row of sizes."""
        elements = self.elements.over(dims, sizes)
        whole: Amounts = np.ceil(self.fixed_bytes + self.bytes_per_element * elements)
        return whole


def linear_work(dims: Sequence[str]) -> ShapeFormula:
    """The default: work is the product of all dimensions."""
    return ShapeFormula((Term(1.0, tuple((name, 1.0) for name in dims)),))


def attention_work(
    batch: str, tokens: str, *, width: int, cache: str | None = None
) -> ShapeFormula:
    """Work of a transformer layer of model width `width`, in units of 24 width² operations.

    Each token multiplies with 12 width² weights (four projections, and a feed-forward part of four
    times the width): 24 width² operations. Against each token attended to it makes a score and a
    weighted sum: 4 width operations, so 1 / (6 width) of a unit. It attends to `tokens`, and to
    `cache` earlier ones.
    """
    if width < 1:
        raise BadInput(f"a model of width {width} does not exist", remedy="Give its model width.")
    pair = 1.0 / (6.0 * width)
    terms = [
        Term(1.0, ((batch, 1.0), (tokens, 1.0))),
        Term(pair, ((batch, 1.0), (tokens, 2.0))),
    ]
    if cache is not None:
        terms.append(Term(pair, ((batch, 1.0), (tokens, 1.0), (cache, 1.0))))
    return ShapeFormula(tuple(terms))


def padded_work(work: ShapeFormula, served: Mapping[str, int], profile: Mapping[str, int]) -> float:
    """Work done for nothing when a request of sizes `served` runs at the profile's sizes.

    Raises:
        BadInput: the profile does not cover the request.
    """
    if served.keys() != profile.keys() or any(served[name] > profile[name] for name in served):
        raise BadInput(
            f"a profile of {dict(profile)} does not cover {dict(served)}",
            remedy="Assign the request to a profile that covers it.",
        )
    return work.at(profile) - work.at(served)
