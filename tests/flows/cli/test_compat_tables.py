"""What people see of a comparison and of a matrix."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from flows.cli.compat_tables import show_comparison, show_matrix
from tests.validators.compatibility.test_matrix import matrix
from validators.compatibility.matrix import remedies
from validators.compatibility.measured import CompatibilityWord, StaticDifference
from validators.contracts.verdict import Finding, Outcome

COMPARISON: dict[str, Any] = {
    "encoder": "image",
    "old": "shop:1 (1.0.0)",
    "new": "shop:2 (1.1.0)",
    "word": CompatibilityWord.REINDEX,
    "outcome": Outcome.FAIL,
    "findings": [
        Finding("compatibility", "reindex", "image.features", Outcome.FAIL, "[batch, 3]",
                "[batch, 4]", "Encode [everything] again.")
    ],
    "metrics": {"fp16_nonfinite_items_share": 0.02, "fp16_nonfinite_items_upper_share": 0.08},
    "geometries": [],
    "differences": [StaticDifference("inputs.pixels", "[batch, 3, 224, 224]", "absent")],
    "adapters": [],
}  # fmt: skip


def printed(show: Any, *arguments: Any) -> str:
    console = Console(width=120, highlight=False)
    with console.capture() as captured:
        show(console, *arguments)
    return captured.get()


def test_a_comparison_shows_word_differences_rates_and_what_to_do() -> None:
    text = printed(show_comparison, COMPARISON)
    for part in ("REINDEX (FAIL)", "[batch, 3, 224, 224]", "2.0%", "8.0%", "measured [batch, 3]",
                 "Encode [everything] again."):  # fmt: skip
        assert part in text


def test_a_matrix_shows_every_cell_and_the_way_out() -> None:
    made = matrix()
    text = printed(show_matrix, made, remedies(made))
    assert "fp16: 311 of 320 broken (94.7% to 98.5%)" in text
    assert "Take vision 1.8.4 in place of 1.8.3 beside text 2.1.0." in text
    assert text.count("COMPATIBLE") == 3
