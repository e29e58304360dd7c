from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from validators.quality.checkpoint import run_suite
from validators.quality.expectations import FORMS, argument_faults
from validators.quality.words import Expectation, Suite, expect

pytestmark = pytest.mark.slow

FRAME = pd.DataFrame(
    {
        "sample": pd.Series(["a", "b", "c"], dtype=object),
        "kind": pd.Series(["x", "y", None], dtype=object),
        "size": [1.0, 2.0, math.nan],
        "depth": [3.0, 1.0, 5.0],
    }
)
ARGUMENTS: dict[str, Any] = {
    "column": "size", "column_A": "size", "column_B": "depth", "min_value": 1, "max_value": 2,
    "strict_min": False, "strict_max": False, "mostly": 0.5, "value_set": ("x", "y"),
    "regex": "^[a-c]$", "value": 3, "threshold": 2, "double_sided": True, "or_equal": True,
    "ties_okay": True,
}  # fmt: skip
OF_TEXT = ("regex", "value_set", "lengths")


def every_form() -> list[Expectation]:
    """Each expectation of the list with all the arguments that it takes."""
    made = []
    for kind, form in FORMS.items():
        names = {**form.required, **form.optional}
        values = {name: ARGUMENTS[name] for name in names}
        if "column" in values and ("regex" in names or "value_set" in names or "length" in kind):
            values["column"] = "kind"
        if "max_value" in values and "proportion" in kind:
            values["min_value"] = 0
        assert not list(argument_faults(kind, values))
        made.append(expect(kind, "form", **values))
    return made


def test_every_expectation_of_the_list_is_answered_by_great_expectations() -> None:
    run = run_suite(Suite("all", tuple(every_form())), FRAME)
    assert [item.error for item in run.checked] == [""] * len(FORMS)
    assert run.document["statistics"]["evaluated_expectations"] == len(FORMS)


@pytest.mark.parametrize(
    ("expectation", "met", "rows"),
    [
        (expect("expect_column_values_to_not_be_null", "r", column="size"), False, (2,)),
        (expect("expect_column_values_to_be_between", "r", column="size", min_value=2), False,
         (0,)),
        (expect("expect_column_values_to_be_between", "r", column="size", min_value=1), True, ()),
        (expect("expect_column_values_to_be_between", "r", column="depth", max_value=3, mostly=0.5),
         True, (2,)),
        (expect("expect_column_mean_to_be_between", "r", column="size", max_value=1), False, None),
        (expect("expect_column_to_exist", "r", column="hue"), False, None),
        (expect("expect_column_pair_values_a_to_be_greater_than_b", "r", column_A="depth",
                column_B="size"), False, (1, 2)),  # a missing value is not less
    ],
)  # fmt: skip
def test_bad_rows_come_back_by_place(
    expectation: Expectation, met: bool, rows: tuple[int, ...] | None
) -> None:
    (found,) = run_suite(Suite("one", (expectation,)), FRAME).checked
    assert (found.met, found.rows, found.error) == (met, rows, "")


@pytest.mark.parametrize(
    ("expectation", "why"),
    [
        (expect("expect_column_mean_to_be_between", "r", column="hue", max_value=1), "no column"),
        (expect("expect_column_mean_to_be_between", "r", column="kind", max_value=1), "evaluated"),
    ],
)
def test_what_cannot_be_answered_says_why_and_names_no_place_of_this_machine(
    expectation: Expectation, why: str
) -> None:
    run = run_suite(Suite("one", (expectation,)), FRAME)
    assert why in run.checked[0].error
    assert not run.checked[0].met
    assert "/" not in str(run.document["results"][0]["exception_info"])
