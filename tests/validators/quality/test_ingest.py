from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.validators.datasets import sample
from validators.contracts.dataset import Dataset, Unreadable
from validators.contracts.verdict import Outcome, Waiver, apply_waivers
from validators.quality.ingest import assess_ingest


def ingested(good: int, bad: int, reason: str = "corrupt-image") -> Dataset:
    return Dataset(
        tuple(sample(f"good{index}") for index in range(good)),
        tuple(Unreadable(f"bad{index}", reason, f"line {index}") for index in range(bad)),
    )


@pytest.mark.parametrize(
    ("good", "bad", "outcome"),
    [
        (20, 0, Outcome.PASS),
        (19, 1, Outcome.WARN),  # exactly the bearable share
        (18, 1, Outcome.FAIL),
        (0, 1, Outcome.FAIL),
        (0, 0, Outcome.INCONCLUSIVE),
    ],
)
def test_the_share_of_unreadable_rows_decides(good: int, bad: int, outcome: Outcome) -> None:
    assert assess_ingest(ingested(good, bad), missing_rate=0.05).outcome is outcome


def test_every_unreadable_row_is_listed_by_id_and_reason() -> None:
    verdict = assess_ingest(ingested(100, 3))
    assert [(item.code, item.subject) for item in verdict.findings] == [
        ("corrupt-image", "bad0"), ("corrupt-image", "bad1"), ("corrupt-image", "bad2"),
    ]  # fmt: skip


def test_a_path_out_of_the_folder_fails_at_any_share_and_cannot_be_waived() -> None:
    verdict = assess_ingest(ingested(1000, 1, "path-outside-folder"))
    assert verdict.outcome is Outcome.FAIL
    waiver = Waiver(verdict.findings[0].name, "someone", "no reason", until_s=10)
    assert apply_waivers(verdict, [waiver], now_s=0).outcome is Outcome.FAIL


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0, 1))
def test_it_passes_only_without_unreadable_rows(good: int, bad: int, rate: float) -> None:
    verdict = assess_ingest(ingested(good, bad), missing_rate=rate)
    assert len([item for item in verdict.findings if item.subject.startswith("bad")]) == bad
    assert (verdict.outcome is Outcome.PASS) == (bad == 0 and good > 0)
