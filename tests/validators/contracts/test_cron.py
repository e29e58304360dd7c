from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.cron import find_cron_fault


@pytest.mark.parametrize(
    "expression",
    [
        "* * * * *", "*/15 * * * *", "0 3 * * mon-fri", "5,35 */2 1-15 jan,jul *", "0 0 29 2 *",
        "0 0 31 2 mon", "0 0 * * 7", "59 23 31 12 0", "10/20 * * * *", "0 0 1-31/10 * *",
    ],
)  # fmt: skip
def test_five_well_formed_fields_are_a_schedule(expression: str) -> None:
    assert find_cron_fault(expression) is None


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("0 * * * * *", "6 fields"),
        ("@daily", "1 fields"),
        ("60 * * * *", "minute field '60' goes outside 0-59"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of month"),
        ("* * * 13 *", "month field '13'"),
        ("* * * * 8", "day of week"),
        ("30-10 * * * *", "runs backwards"),
        ("*/0 * * * *", "goes outside"),
        ("1-x * * * *", "not a number"),
        ("*-5 * * * *", "not a number"),
        ("mon * * * *", "a name that is not known there"),
        ("* * L * *", "not a number"),
        ("* * * * fri#1", "not a number"),
        ("R * * * *", "not a number"),
        ("1,,2 * * * *", "not a number"),
        ("0 0 30 2 *", "would never run"),
        ("0 0 31 4,6 *", "would never run"),
        ("-1 * * * *", "not a number"),
    ],
)
def test_a_bad_field_is_named(expression: str, fault: str) -> None:
    found = find_cron_fault(expression)
    assert found is not None
    assert fault in found


@given(st.text(alphabet="0123456789*/-, \tabcjanmofri", max_size=30))
def test_any_text_is_judged(text: str) -> None:
    fault = find_cron_fault(text)
    assert fault is None or fault


@given(st.integers(0, 59), st.integers(0, 23), st.integers(1, 28), st.integers(1, 12))
def test_every_moment_of_the_year_can_be_scheduled(
    minute: int, hour: int, day: int, month: int
) -> None:
    assert find_cron_fault(f"{minute} {hour} {day} {month} *") is None
