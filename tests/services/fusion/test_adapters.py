from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors import numpy as tensors_file

from services.fusion.adapters import adapter_kind, fit_conse, fit_ridge, load_adapter, to_unit
from validators.contracts.errors import BadInput, Refused, TooLarge, Unsupported
from validators.contracts.pipeline import AdapterEntry


def entry(kind: str, **options: str | int | float | bool) -> AdapterEntry:
    return AdapterEntry(kind, "features", "common", tuple(sorted(options.items())))


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def test_ridge_recovers_a_linear_map_from_pairs_without_noise() -> None:
    x, weight, bias = normal(80, 6), normal(6, 3, seed=1), normal(3, seed=2)
    adapter = load_adapter(entry("ridge"), fit_ridge(x, x @ weight + bias))
    fresh = normal(10, 6, seed=3)
    np.testing.assert_allclose(adapter(fresh), to_unit(fresh @ weight + bias), atol=1e-3)


def test_the_penalty_rises_with_the_noise() -> None:
    x, weight = normal(60, 40), normal(40, 4, seed=1)
    clean = tensors_file.load(fit_ridge(x, x @ weight))["weight"]
    noisy = tensors_file.load(fit_ridge(x, x @ weight + 30 * normal(60, 4, seed=2)))["weight"]
    strict = tensors_file.load(fit_ridge(x, x @ weight, alpha=1e6))["weight"]
    assert np.abs(clean - weight).max() < 0.01
    assert np.linalg.norm(noisy) < np.linalg.norm(weight) * 2
    assert np.linalg.norm(strict) < 1e-3


def test_the_chosen_penalty_has_the_least_leave_one_out_error() -> None:
    """The closed form agrees with really leaving one out, twelve times."""
    x, y = normal(12, 5), normal(12, 2, seed=1)
    unit = float((np.linalg.svd(x - x.mean(0), compute_uv=False) ** 2).mean())

    def left_out(alpha: float) -> float:
        errors = []
        for row in range(len(x)):
            kept = np.arange(len(x)) != row
            centre, target = x[kept].mean(0), y[kept].mean(0)
            a, b = x[kept] - centre, y[kept] - target
            weight = np.linalg.solve(a.T @ a + alpha * unit * np.eye(5), a.T @ b)
            errors.append(((x[row] - centre) @ weight + target - y[row]) ** 2)
        return float(np.mean(errors))

    chosen = tensors_file.load(fit_ridge(x, y))["weight"]
    alphas = [10.0**step for step in range(-6, 4)]
    best = min(alphas, key=left_out)
    np.testing.assert_allclose(
        chosen, tensors_file.load(fit_ridge(x, y, alpha=best))["weight"], rtol=1e-5
    )


def test_the_same_pairs_give_the_same_bytes() -> None:
    assert fit_ridge(normal(20, 30), normal(20, 4)) == fit_ridge(normal(20, 30), normal(20, 4))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (normal(2, 3), normal(2, 3)),
        (normal(9, 3), normal(8, 3)),
        (normal(9), normal(9, 3)),
        (np.full((9, 3), np.nan), normal(9, 3)),
    ],
    ids=["two pairs", "unpaired", "no matrix", "nan"],
)
def test_pairs_that_cannot_teach_are_refused(x: np.ndarray, y: np.ndarray) -> None:
    with pytest.raises(BadInput):
        fit_ridge(x, y)


def test_pairs_that_are_all_alike_teach_their_mean_and_nothing_else() -> None:
    adapter = load_adapter(entry("ridge"), fit_ridge(np.ones((5, 3)), np.tile([3.0, 4.0], (5, 1))))
    np.testing.assert_allclose(adapter(normal(2, 3)), [[0.6, 0.8], [0.6, 0.8]], atol=1e-6)


def test_conse_mixes_class_vectors_by_their_probabilities() -> None:
    adapter = load_adapter(entry("conse", top=2), fit_conse(np.eye(3)))
    logits = np.log(np.array([[0.6, 0.3, 0.1]]))
    np.testing.assert_allclose(adapter(logits), to_unit(np.array([[2.0, 1.0, 0.0]])), atol=1e-6)


def test_temperature_evens_the_mixture_out() -> None:
    logits = np.array([[4.0, 0.0]])
    sharp = load_adapter(entry("conse", top=2), fit_conse(np.eye(2)))(logits)
    even = load_adapter(entry("conse", top=2, temperature=100.0), fit_conse(np.eye(2)))(logits)
    assert sharp[0, 1] < 0.05
    assert even[0, 1] > 0.6


def test_auto_takes_what_the_file_holds() -> None:
    ridge, conse = fit_ridge(normal(9, 4), normal(9, 3)), fit_conse(normal(20, 3))
    assert (adapter_kind(ridge), adapter_kind(conse)) == ("ridge", "conse")
    assert load_adapter(entry("auto"), ridge)(normal(2, 4)).shape == (2, 3)
    assert load_adapter(entry("auto"), conse)(normal(2, 20)).shape == (2, 3)


@given(
    arrays.arrays(
        np.float64, st.tuples(st.integers(1, 5), st.just(4)), elements=st.floats(-1e6, 1e6)
    )
)
@settings(deadline=None)
def test_whatever_comes_in_unit_vectors_or_zeros_come_out(values: np.ndarray) -> None:
    for adapter in (
        load_adapter(entry("identity"), None),
        load_adapter(entry("ridge"), fit_ridge(normal(9, 4), normal(9, 3))),
        load_adapter(entry("conse", top=3), fit_conse(normal(4, 3))),
    ):
        vectors = adapter(values)
        norms = np.linalg.norm(vectors, axis=1)
        assert vectors.dtype == np.float32
        assert np.isfinite(vectors).all()
        assert np.all((np.abs(norms - 1) < 1e-4) | (norms < 1e-3) | (np.abs(values).max(1) < 1e-6))


@pytest.mark.parametrize("values", [normal(4), normal(2, 5), np.full((1, 4), np.nan)])
def test_an_output_the_map_was_not_fitted_on_is_refused(values: np.ndarray) -> None:
    adapter = load_adapter(entry("ridge"), fit_ridge(normal(9, 4), normal(9, 3)))
    with pytest.raises(BadInput):
        adapter(values)


NOT_A_NUMBER = tensors_file.save({"class_vectors": np.full((2, 2), np.nan, np.float32)})
RIDGE = fit_ridge(normal(9, 4), normal(9, 3))


@pytest.mark.parametrize(
    ("kind", "data", "error"),
    [
        ("ridge", None, Refused),
        ("ridge", b"", Refused),
        ("ridge", b"\x80\x04pickle", Refused),
        ("ridge", RIDGE[:-8], Refused),
        ("ridge", fit_conse(normal(4, 3)), Refused),
        ("conse", RIDGE, Refused),
        ("auto", tensors_file.save({"weight": np.ones((2, 2), np.float32)}), Refused),
        ("auto", tensors_file.save({"class_vectors": np.ones(3, np.float32)}), Refused),
        ("auto", tensors_file.save({"class_vectors": np.ones((2, 2))}), Refused),
        ("auto", NOT_A_NUMBER, Refused),
        (
            "ridge",
            tensors_file.save(
                {"weight": np.ones((4, 3), np.float32), "bias": np.ones(2, np.float32)}
            ),
            Refused,
        ),
        ("ridge", bytes(256 * 1024 * 1024 + 1), TooLarge),
        ("pickle", RIDGE, Unsupported),
    ],
    ids=["none", "empty", "pickle", "cut short", "conse as ridge", "ridge as conse", "half",
         "a vector", "double", "nan", "unfitting bias", "too large", "unknown kind"],
)  # fmt: skip
def test_a_file_that_is_no_sound_adapter_is_refused(
    kind: str, data: bytes | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        load_adapter(entry(kind), data)


@pytest.mark.parametrize(
    "options",
    [{"top": 0}, {"top": 9}, {"top": "2"}, {"top": True}, {"temperature": 0}, {"temperature": "1"}],
)
def test_wrong_conse_options_are_refused_by_name(options: dict[str, int | str | bool]) -> None:
    with pytest.raises(BadInput, match=next(iter(options))):
        load_adapter(entry("conse", **options), fit_conse(normal(4, 3)))


@pytest.mark.parametrize("vectors", [normal(3), np.zeros((0, 3)), np.full((2, 2), np.inf)])
def test_class_vectors_that_are_no_matrix_are_refused(vectors: np.ndarray) -> None:
    with pytest.raises(BadInput):
        fit_conse(vectors)
