from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.quality.suite_file import (
    MAX_EXPECTATIONS,
    MAX_FILE_BYTES,
    SuiteFileError,
    read_suite,
    write_suite,
)
from validators.quality.words import Severity, Suite, expect

BETWEEN = "expect_column_values_to_be_between"
SUITE = Suite(
    "image",
    (
        expect("expect_column_values_to_be_in_set", "media-type", column="media_type",
               value_set=("image/png",)),
        expect(BETWEEN, "enlarged", Severity.WARNING, column="width_px", min_value=112, mostly=0.9),
        expect("expect_table_row_count_to_be_between", "rows", min_value=10),
    ),
    (("encoder", "image"), ("preprocess.size", 224)),
)  # fmt: skip


def document(**changes: Any) -> dict[str, Any]:
    return json.loads(write_suite(SUITE)) | changes


def problems(value: object) -> list[str]:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(SuiteFileError) as caught:
        read_suite(data, file="quality/image.json", name="image")
    assert str(caught.value).count("quality/image.json") >= 1
    return [str(item) for item in caught.value.problems]


def entry(kind: object = BETWEEN, **arguments: Any) -> dict[str, Any]:
    return document(expectations=[{"type": kind, "kwargs": arguments}])


def test_what_is_written_is_read_again() -> None:
    assert read_suite(write_suite(SUITE), file="f", name="image") == SUITE


@pytest.mark.slow
def test_great_expectations_reads_the_file_and_writes_the_same_expectations() -> None:
    import great_expectations as gx

    stated = document()
    suite = gx.ExpectationSuite(**stated)
    assert len(suite.expectations) == len(SUITE.expectations)
    written = suite.to_json_dict()
    assert written["meta"] == stated["meta"]
    again = read_suite(json.dumps(written).encode(), file="f", name="image")
    assert again == SUITE


def test_an_expectation_of_a_stranger_s_suite_is_named_by_its_type() -> None:
    (found,) = read_suite(
        json.dumps(entry(column="hue", min_value=1) | {"meta": {}}).encode(), file="f", name="image"
    ).expectations
    assert (found.rule, found.severity) == ("be-between", Severity.CRITICAL)


@pytest.mark.parametrize(
    "kind",
    [
        "expect_query_results_to_match_comparison",
        "ExpectQueryResultsToMatchComparison",
        "unexpected_rows_expectation",
        "expect_column_values_to_match_json_schema",
        "os.system",
        "subprocess:Popen",
        "builtins.eval",
        "__class__",
        "expect_column_values_to_be_between ",
        "",
        7,
        None,
    ],
)
def test_another_expectation_or_a_class_from_elsewhere_is_refused(kind: object) -> None:
    (problem,) = problems(entry(kind, column="x"))
    assert "expectations[0].type" in problem


def test_a_slip_of_the_pen_is_answered_with_the_right_word() -> None:
    (problem,) = problems(entry("expect_column_values_to_be_betwen", column="x", min_value=1))
    assert f"Did you mean {BETWEEN}?" in problem


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ({"column": "a", "min_value": 1, "row_condition": "__import__('os').system('x')"},
         "kwargs.row_condition"),
        ({"column": "a", "min_value": {"$PARAMETER": "now()"}}, "kwargs.min_value"),
        ({"column": "a", "min_value": True}, "kwargs.min_value"),
        ({"column": "a", "min_value": "1"}, "kwargs.min_value"),
        ({"column": "a", "min_value": 3, "max_value": 2}, "kwargs.min_value"),
        ({"column": "a"}, "kwargs.min_value"),
        ({"min_value": 1}, "kwargs.column"),
        ({"column": "a" * 200, "min_value": 1}, "kwargs.column"),
        ({"column": "a\nb", "min_value": 1}, "kwargs.column"),
        ({"column": ["a"], "min_value": 1}, "kwargs.column"),
        ({"column": "a", "min_value": 1, "mostly": 1.5}, "kwargs.mostly"),
        ({"column": "a", "min_value": 1, "result_format": "COMPLETE"}, "kwargs.result_format"),
        ({"column": "a", "min_value": 10**400}, "kwargs.min_value"),
    ],
)  # fmt: skip
def test_an_argument_that_does_not_fit_is_named(arguments: dict[str, Any], place: str) -> None:
    found = problems(entry(**arguments))
    assert any(f"expectations[0].{place}" in item for item in found)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("expect_column_values_to_match_regex", {"column": "a", "regex": "^(a+)+$"}),
        ("expect_column_values_to_be_in_set", {"column": "a", "value_set": []}),
        ("expect_column_values_to_be_in_set", {"column": "a", "value_set": ["x"] * 1001}),
        ("expect_column_values_to_be_in_set", {"column": "a", "value_set": ["x" * 300]}),
        ("expect_column_values_to_be_in_set", {"column": "a", "value_set": [{"a": 1}]}),
        ("expect_table_row_count_to_equal", {"value": -1}),
    ],
)
def test_sets_counts_and_patterns_are_bounded(kind: str, arguments: dict[str, Any]) -> None:
    assert len(problems(entry(kind, **arguments))) == 1


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (b"", "not JSON"),
        (write_suite(SUITE)[:-40], "line"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"name": "image", "name": "image"}', "written twice"),
        (b'{"name": NaN}', "no numbers of JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "no JSON object"),
        (b" " * (MAX_FILE_BYTES + 1), "at most"),
        (document(name="text"), "this file is for 'image'"),
        (document(name={"a": 1}), "no text"),
        (document(expectations={}), "no list"),
        (document(expectations=[7]), "no JSON object"),
        (document(expectations=[{}] * (MAX_EXPECTATIONS + 1)), "at most"),
        (document(suite_parameters={"a": 1}), "not read"),
        (document(data_context="x"), "no such key"),
        (document(meta=[]), "no JSON object"),
        (document(meta={"modalgate": {"contract": {"a": {"b": 1}}}}), "Write the file anew"),
        (document(meta={"modalgate": {"contract": []}}), "no JSON object"),
        (document(expectations=[{"type": BETWEEN, "kwargs": [], "severity": "critical"}]),
         "no JSON object"),
        (document(expectations=[{"type": BETWEEN, "kwargs": {"column": "a", "min_value": 1},
                                 "severity": "fatal"}]), "none of critical"),
        (document(expectations=[{"type": BETWEEN, "kwargs": {"column": "a", "min_value": 1},
                                 "meta": {"modalgate": "A RULE"}}]), "small letters"),
    ],
)  # fmt: skip
def test_a_file_of_another_form_is_told_with_its_place(value: object, what: str) -> None:
    assert any(what in item for item in problems(value)), problems(value)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    bad = document(
        name="video", expectations=[{"type": "x", "kwargs": {}}, {"type": BETWEEN, "kwargs": {}}]
    )
    places = [item.split(": ")[1] for item in problems(bad)]
    assert places == [
        "name", "expectations[0].type", "expectations[1].kwargs.column",
        "expectations[1].kwargs.min_value",
    ]  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["name", "expectations", "meta", "x"]), JSON) | JSON)
def test_whatever_stands_in_a_file_it_is_read_or_refused(value: object) -> None:
    data = json.dumps(value).encode()
    try:
        read_suite(data, file="f", name="image")
    except SuiteFileError as error:
        assert error.problems


@given(st.binary(max_size=200))
def test_whatever_the_bytes_they_are_read_or_refused(data: bytes) -> None:
    with pytest.raises(SuiteFileError):
        read_suite(data, file="f", name="image")
