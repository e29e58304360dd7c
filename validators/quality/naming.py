"""How expectations are called in findings, and what they ask for, in words."""

from __future__ import annotations

from validators.quality.words import Expectation

GATE = "quality"


def code_of(expectation: Expectation) -> str:
    """How findings of the expectation are called: out-of-range-brightness."""
    return f"{expectation.rule}-{expectation.column}".replace("_", "-").replace(".", "-").lower()


def wanted_by(expectation: Expectation) -> str:
    """What the expectation asks for, for people."""
    low, high = expectation.argument("min_value"), expectation.argument("max_value")
    if isinstance(low, int | float) and isinstance(high, int | float):
        return f"{low:g} to {high:g}"
    if isinstance(low, int | float):
        return f"{low:g} or more"
    if isinstance(high, int | float):
        return f"{high:g} or less"
    values = expectation.argument("value_set")
    if isinstance(values, tuple):
        shown = " or ".join(str(item) for item in values[:8])
        return shown if len(values) <= 8 else f"{shown} or {len(values) - 8} more"
    simple = {
        "expect_column_values_to_be_unique": "unique",
        "expect_column_values_to_not_be_null": "present",
        "expect_column_values_to_be_null": "absent",
    }
    bare = expectation.type.removeprefix("expect_").replace("_", " ")
    return simple.get(expectation.type, bare)
