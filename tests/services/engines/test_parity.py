from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from services.engines.parity import deviation
from validators.contracts.errors import BadInput


def test_figures_are_over_every_element_and_row() -> None:
    reference = np.array([[3.0, 4.0], [1.0, 0.0]], np.float32)
    engine = np.array([[3.0, 4.0], [0.0, 1.0]], np.float32)
    found = deviation("case", "out", reference, engine)
    assert (found.max_abs, found.max_rel, found.cosine_min, found.nonfinite) == (1.0, 0.25, 0.0, 0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_in_the_engine_only_is_counted(value: float) -> None:
    found = deviation("case", "out", np.ones((2, 2)), np.array([[1.0, value], [1.0, 1.0]]))
    assert found.nonfinite == 1
    assert found.cosine_min == -1.0


def test_a_masked_logit_is_met_by_the_same_infinity_only() -> None:
    reference = np.array([[1.0, -np.inf]])
    assert deviation("case", "out", reference, reference.copy()).nonfinite == 0
    assert deviation("case", "out", reference, np.array([[1.0, 5.0]])).nonfinite == 1
    assert deviation("case", "out", reference, np.array([[1.0, np.inf]])).nonfinite == 1


def test_a_source_model_that_answers_nan_cannot_be_compared_with() -> None:
    with pytest.raises(BadInput, match="source model"):
        deviation("case", "out", np.array([np.nan]), np.array([1.0]))


def test_other_shapes_cannot_be_compared() -> None:
    with pytest.raises(BadInput, match="shape"):
        deviation("case", "out", np.ones((2, 3)), np.ones((3, 2)))


def test_zero_agrees_with_zero_and_with_nothing_else() -> None:
    zero = np.zeros((1, 3))
    assert deviation("case", "out", zero, zero).cosine_min == 1.0
    assert deviation("case", "out", zero, np.ones((1, 3))).cosine_min == 0.0
    assert np.isfinite(deviation("case", "out", zero, np.ones((1, 3))).max_rel)


_ARRAYS = hnp.arrays(
    np.float32, (3, 4), elements=st.floats(-1e3, 1e3, width=32, allow_subnormal=False)
)


@given(reference=_ARRAYS, engine=_ARRAYS)
def test_figures_are_always_finite_and_zero_only_for_equals(
    reference: np.ndarray,
    engine: np.ndarray,  # type: ignore[type-arg]
) -> None:
    found = deviation("case", "out", reference, engine)
    assert np.isfinite([found.max_abs, found.max_rel, found.cosine_min]).all()
    assert -1.0 <= found.cosine_min <= 1.0
    assert (found.max_abs == 0.0) == bool((reference == engine).all())
    same = deviation("case", "out", reference, reference)
    assert same.max_abs == 0.0 and same.cosine_min == pytest.approx(1.0)
