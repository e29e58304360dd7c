from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.quality.patterns import MAX_SUBJECT, find_pattern_fault


@pytest.mark.parametrize(
    "pattern",
    [
        "^[A-Z]{2,4}-[0-9]+$",
        "^(cat|dog)$",
        "^camera-[ab]$",
        r"^\d{4}-\d{2}-\d{2}",
        "^.{1,40}$",
        "^(?:left|right) (front|rear)$",
    ],
)
def test_what_people_need_may_be_used(pattern: str) -> None:
    assert find_pattern_fault(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("^(a+)+$", "repeats something"),
        ("^(a|aa)*$", "repeats a choice"),
        ("^(a*)*b", "repeats something"),
        ("^a*a*a*a*a*b", "too many repetitions"),
        ("^(x+x+)y", "too many repetitions"),
        ("a+b", "does not begin"),
        (r"^(a)\1", "refers to"),
        ("^(?=a)b", "looks ahead"),
        ("^(?<!a)b", "looks ahead"),
        ("^" + "a" * 300, "characters"),
        ("^(", "is not a regular"),
        ("^[", "is not a regular"),
        ("^a{99999999999}", "is not a regular"),
        ("", "characters"),
        ("^" + "(" * 90 + ")" * 90, None),
        ("^(a?){60}b", "repeats something"),
        ("^(?>a+)b", "looks ahead"),
    ],
)
def test_what_could_hold_the_gate_up_is_refused(pattern: str, why: str | None) -> None:
    fault = find_pattern_fault(pattern)
    assert (fault is None) if why is None else (fault is not None and why in fault)


@given(st.text(alphabet="ab()[]{}|*+?^$.\\d0123,-:=<>!", max_size=30))
def test_any_pattern_is_judged_and_what_may_be_used_is_quick(text: str) -> None:
    pattern = "^" + text
    if find_pattern_fault(pattern) is None:
        started = time.process_time()
        for subject in ("a" * MAX_SUBJECT, "ab" * (MAX_SUBJECT // 2), "0" * MAX_SUBJECT):
            re.search(pattern, subject)
        assert time.process_time() - started < 5  # a bomb takes years
