from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scenarios.small import pipeline_document
from validators.contracts.pipeline import Pipeline
from validators.contracts.pipeline_file import parse_pipeline
from validators.contracts.verdict import Outcome
from validators.quality.contract import contract_suites
from validators.quality.staleness import changed_facts, edits, judge_files
from validators.quality.suite_file import read_suite, write_suite
from validators.quality.words import Argument, Severity, Suite, expect


def pipeline(**encoders: dict[str, Any]) -> Pipeline:
    """The small service's pipeline with an encoder's preprocessing changed."""
    document = pipeline_document()
    for name, options in encoders.items():
        document["encoders"][name]["preprocess"]["options"].update(options)
    return parse_pipeline(yaml.safe_dump(document))


def ranges(suite: Suite, column: str) -> dict[str, tuple[Argument | None, Argument | None]]:
    return {
        item.rule: (item.argument("min_value"), item.argument("max_value"))
        for item in suite.expectations
        if item.column == column and "between" in item.type
    }


def test_there_is_a_suite_for_all_samples_and_one_for_each_branch() -> None:
    suites = contract_suites(pipeline())
    assert set(suites) == {"samples", "image", "text"}
    present = [
        item.column for item in suites["samples"].expectations if item.rule == "missing-modality"
    ]
    assert present == ["image", "text"]
    assert all(
        item.mostly == 0.95
        for item in suites["samples"].expectations
        if item.rule == "missing-modality"
    )


@pytest.mark.parametrize(("size", "least", "often"), [(32, 16, 16), (224, 16, 112), (512, 32, 256)])
def test_a_picture_s_sides_follow_from_the_encoder_s_square(
    size: int, least: int, often: int
) -> None:
    suite = contract_suites(pipeline(image={"size": size}))["image"]
    assert ranges(suite, "width_px") == {
        "out-of-range": (least, 8192), "enlarged": (often, None),
    }  # fmt: skip


def test_a_text_s_words_follow_from_the_tokens_that_its_encoder_reads() -> None:
    found = contract_suites(pipeline(text={"max_tokens": 8}))["text"]
    assert ranges(found, "words") == {"out-of-range": (1, 2000), "cut-short": (None, 6)}


def storefront() -> Pipeline:
    path = Path(__file__).parents[3] / "flows/examples/storefront/pipeline.yaml"
    return parse_pipeline(path.read_text(encoding="utf-8"))


def test_a_recording_s_length_follows_from_the_encoder_s_window() -> None:
    suite = contract_suites(storefront())["audio"]
    assert ranges(suite, "duration_ms") == {"out-of-range": (100, 8000)}


def test_an_edge_service_takes_two_modalities_at_once() -> None:
    document = pipeline_document()
    document["slo"] = {"class": "edge", "p99_ms": 80}
    for branch in document["branches"].values():
        branch.pop("timeout_ms", None)
    suites = contract_suites(parse_pipeline(yaml.safe_dump(document)))
    assert ranges(suites["samples"], "modalities") == {"too-many-modalities": (1, 2)}


@pytest.mark.parametrize("name", ["samples", "image", "text"])
def test_a_suite_of_the_contract_goes_through_its_file_unchanged(name: str) -> None:
    suite = contract_suites(pipeline())[name]
    assert read_suite(write_suite(suite), file="f", name=name) == suite


def test_a_fresh_folder_says_nothing_and_edits_alone_are_no_staleness() -> None:
    made = contract_suites(pipeline())
    assert list(judge_files(made, made)) == []
    edited = replace(made["image"], expectations=made["image"].expectations[:3])
    assert list(judge_files(made | {"image": edited}, made)) == []
    assert edits(edited, made["image"])


def test_a_contract_that_moved_on_warns_with_the_difference() -> None:
    old, now = contract_suites(pipeline()), contract_suites(pipeline(image={"size": 64}))
    (found,) = judge_files(old, now)
    assert (found.code, found.subject, found.outcome) == ("stale-suite", "image", Outcome.WARN)
    assert found.measured == "preprocess.size: 32 became 64"
    assert changed_facts(old["text"], now["text"]) == []


def test_a_suite_of_unknown_origin_and_one_that_is_not_there_warn() -> None:
    made = contract_suites(pipeline())
    files = {"image": replace(made["image"], facts=()), "samples": made["samples"]}
    found = {(item.code, item.subject) for item in judge_files(files, made)}
    assert found == {("suite-of-unknown-origin", "image"), ("suite-not-in-folder", "text")}


def test_edits_say_what_stands_in_the_file_and_what_the_contract_says() -> None:
    made = contract_suites(pipeline())["image"]
    limit = expect(
        "expect_column_values_to_be_between", "out-of-range", Severity.WARNING,
        column="brightness", min_value=5, max_value=250,
    )  # fmt: skip
    edited = replace(
        made,
        expectations=tuple(
            limit if item.column == "brightness" and "between" in item.type else item
            for item in made.expectations
        ),
    )
    assert edits(edited, made) == [
        "brightness column_values_to_be_between: 5 to 250 (warning), "
        "the contract says 1 to 254.5 (critical)"
    ]
