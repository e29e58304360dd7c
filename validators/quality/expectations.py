"""The expectations that a suite file may use, each with the arguments it takes.

They look at the columns of a table in memory and at nothing else. Whatever reads files, runs
queries or evaluates text is not here, so it cannot be asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from validators.quality.patterns import find_pattern_fault
from validators.quality.words import Argument

MAX_NAME = 128
MAX_TEXT = 256
MAX_VALUES = 1000

Fault = str
"""The end of a sentence that begins with the argument's name."""


def _column(value: object) -> Fault | None:
    return (
        None
        if _is_text(value, MAX_NAME)
        else f"has to be a column's name of 1 to {MAX_NAME} characters"
    )


def _number(value: object) -> Fault | None:
    return None if _is_number(value) else "has to be a finite number"


def _whole(value: object) -> Fault | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**12
    return None if fits else "has to be a whole number, 0 or more"


def _share(value: object) -> Fault | None:
    fits = isinstance(value, int | float) and _is_number(value) and 0 <= value <= 1
    return None if fits else "has to be a share from 0 to 1"


def _flag(value: object) -> Fault | None:
    return None if isinstance(value, bool) else "has to be true or false"


def _values(value: object) -> Fault | None:
    listed = value if isinstance(value, list | tuple) else ()
    if 0 < len(listed) <= MAX_VALUES and all(_is_value(item) for item in listed):
        return None
    return f"has to be a list of 1 to {MAX_VALUES} texts ({MAX_TEXT} characters) or numbers"


def _is_value(value: object) -> bool:
    return _is_text(value, MAX_TEXT) or isinstance(value, bool) or _is_number(value)


def _pattern(value: object) -> Fault | None:
    if not isinstance(value, str):
        return "has to be a text"
    return find_pattern_fault(value)


def _is_text(value: object, limit: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= limit and value.isprintable()


def _is_number(value: object) -> bool:
    """NaN and infinity are beyond every bound, and so is an integer that no float holds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e300


Check = Callable[[object], Fault | None]


@dataclass(frozen=True, slots=True)
class Form:
    """An expectation's arguments. One of `either` has to be there."""

    required: Mapping[str, Check]
    optional: Mapping[str, Check]
    either: tuple[str, ...] = ()


_BOUNDS: Mapping[str, Check] = {
    "min_value": _number, "max_value": _number, "strict_min": _flag, "strict_max": _flag,
}  # fmt: skip
_COUNTS: Mapping[str, Check] = {"min_value": _whole, "max_value": _whole}
_MOSTLY: Mapping[str, Check] = {"mostly": _share}
_OF_COLUMN: Mapping[str, Check] = {"column": _column}
_OF_SET: Mapping[str, Check] = {"column": _column, "value_set": _values}
_OF_PATTERN: Mapping[str, Check] = {"column": _column, "regex": _pattern}
_OF_PAIR: Mapping[str, Check] = {"column_A": _column, "column_B": _column}
_EITHER = ("min_value", "max_value")


def _between(bounds: Mapping[str, Check], **more: Check) -> Form:
    return Form(_OF_COLUMN, {**bounds, **more}, _EITHER)


FORMS: Mapping[str, Form] = {
    # rows of a column
    "expect_column_values_to_be_between": _between(_BOUNDS, mostly=_share),
    "expect_column_values_to_not_be_null": Form(_OF_COLUMN, _MOSTLY),
    "expect_column_values_to_be_null": Form(_OF_COLUMN, _MOSTLY),
    "expect_column_values_to_be_unique": Form(_OF_COLUMN, _MOSTLY),
    "expect_column_values_to_be_in_set": Form(_OF_SET, _MOSTLY),
    "expect_column_values_to_not_be_in_set": Form(_OF_SET, _MOSTLY),
    "expect_column_values_to_match_regex": Form(_OF_PATTERN, _MOSTLY),
    "expect_column_values_to_not_match_regex": Form(_OF_PATTERN, _MOSTLY),
    "expect_column_value_lengths_to_be_between": _between(_COUNTS, mostly=_share),
    "expect_column_value_lengths_to_equal": Form({**_OF_COLUMN, "value": _whole}, _MOSTLY),
    "expect_column_value_z_scores_to_be_less_than": Form(
        {**_OF_COLUMN, "threshold": _number, "double_sided": _flag}, _MOSTLY
    ),
    # rows of two columns
    "expect_column_pair_values_a_to_be_greater_than_b": Form(
        _OF_PAIR, {**_MOSTLY, "or_equal": _flag}
    ),
    "expect_column_pair_values_to_be_equal": Form(_OF_PAIR, _MOSTLY),
    # a column as a whole
    "expect_column_to_exist": Form(_OF_COLUMN, {}),
    "expect_column_max_to_be_between": _between(_BOUNDS),
    "expect_column_mean_to_be_between": _between(_BOUNDS),
    "expect_column_median_to_be_between": _between(_BOUNDS),
    "expect_column_min_to_be_between": _between(_BOUNDS),
    "expect_column_stdev_to_be_between": _between(_BOUNDS),
    "expect_column_sum_to_be_between": _between(_BOUNDS),
    "expect_column_unique_value_count_to_be_between": _between(_COUNTS),
    "expect_column_proportion_of_unique_values_to_be_between": _between(_BOUNDS),
    "expect_column_proportion_of_non_null_values_to_be_between": _between(_BOUNDS),
    "expect_column_distinct_values_to_be_in_set": Form(_OF_SET, {}),
    "expect_column_distinct_values_to_contain_set": Form(_OF_SET, {}),
    "expect_column_distinct_values_to_equal_set": Form(_OF_SET, {}),
    "expect_column_most_common_value_to_be_in_set": Form(_OF_SET, {"ties_okay": _flag}),
    # the table
    "expect_table_row_count_to_be_between": Form({}, _COUNTS, _EITHER),
    "expect_table_row_count_to_equal": Form({"value": _whole}, {}),
}

_WHY_NOT: Mapping[str, str] = {
    "row_condition": "a condition is a piece of program that would be run",
    "condition_parser": "a condition is a piece of program that would be run",
}


def argument_faults(kind: str, arguments: Mapping[str, object]) -> Iterator[tuple[str, Fault]]:
    """(argument, what is wrong with it), for an expectation of FORMS."""
    form = FORMS[kind]
    known = {**form.required, **form.optional}
    for name, value in arguments.items():
        check = known.get(name)
        if check is None:
            why = _WHY_NOT.get(name, f"this expectation takes {', '.join(known)}")
            yield name, f"cannot be used: {why}"
        elif (fault := check(value)) is not None:
            yield name, fault
    for name in form.required:
        if name not in arguments:
            yield name, "is missing"
    if form.either and not any(name in arguments for name in form.either):
        yield form.either[0], f"is missing, and {form.either[1]} too: one has to be there"
    low, high = arguments.get("min_value"), arguments.get("max_value")
    if _is_number(low) and _is_number(high) and low > high:  # type: ignore[operator]
        yield "min_value", "is more than max_value"


def frozen(value: object) -> Argument:
    """A checked argument as a value: lists become tuples."""
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]


def class_name(kind: str) -> str:
    """`expect_column_max_to_be_between` as Great Expectations names its class."""
    return "".join(part.capitalize() for part in kind.split("_"))
