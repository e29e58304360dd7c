"""The experiment behind the incident: which norm breaks where."""

from __future__ import annotations

import pytest

from tests.benchmarks.epsilon import RUNTIMES, broken_share


@pytest.mark.parametrize(
    ("where", "how", "epsilon", "spread", "share"),
    [
        ("torch fp16", "written", 1e-12, 1e-4, 1.0),  # its variance is below half's least step
        ("torch fp16", "written", 1e-12, 1e-3, 0.0),
        ("torch fp16", "written", 1e-5, 1e-4, 0.0),  # the epsilon alone
        ("torch fp16", "written", 1e-5, 0.0, 0.0),
        ("torch fp16", "native", 1e-12, 1e-4, 0.0),  # fused: accumulated in fp32
        ("torch fp16", "native", 1e-12, 0.0, 0.0),
        ("torch bf16", "written", 1e-12, 1e-4, 0.0),  # fp32's exponent
        ("torch fp32", "written", 1e-12, 1e-4, 0.0),
    ],
)
def test_a_norm_breaks_only_written_out_in_half_with_a_tiny_epsilon(
    where: str, how: str, epsilon: float, spread: float, share: float
) -> None:
    assert broken_share(where, how, epsilon, spread) == share


@pytest.mark.parametrize("where", RUNTIMES)
@pytest.mark.parametrize("how", ["written", "native"])
def test_runtimes_on_this_processor_hide_it(where: str, how: str) -> None:
    assert broken_share(where, how, 1e-12, 1e-4) == 0.0
