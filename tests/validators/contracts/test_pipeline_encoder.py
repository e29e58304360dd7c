"""What an encoder's section may say of precisions, planned profiles and shapes outside them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.engines.profiles.bounds import MAX_DIMS
from tests.validators.contracts.smallest import SMALLEST, Step, changed, problems_of
from validators.contracts import documents
from validators.contracts.digest import canonical_json
from validators.contracts.encoder_rules import MAX_PLANNED_DIMS
from validators.contracts.engine import TOLERANCES, Outside, Precision, ShapeRange, Tolerance
from validators.contracts.pipeline import AutoProfiles, Pipeline
from validators.contracts.pipeline_encoder_build import AUTO_PRECISIONS
from validators.contracts.pipeline_file import parse_pipeline, pipeline_schema

IDS = {"min": [1, 16], "opt": [2, 16], "max": [4, 16]}
DEFAULT = ShapeRange("ids", (1, 16), (1, 16), (8, 16))
BOUNDS = ShapeRange("ids", (1, 16), (2, 16), (4, 16))
F32, F16, BF16, INT8 = Precision.FP32, Precision.FP16, Precision.BF16, Precision.INT8


def parsed(key: str, value: object) -> Pipeline:
    text = changed("encoders", "text", key, to=value)
    pipeline = parse_pipeline(text)
    assert documents.load(Pipeline, canonical_json(pipeline)) == pipeline
    return pipeline


@pytest.mark.parametrize(
    ("stated", "first", "candidates"),
    [
        ("fp32", F32, ()),
        ("bf16", BF16, ()),
        (["bf16"], BF16, ()),
        (["bf16", "fp32", "int8"], BF16, (BF16, F32, INT8)),
        ("auto", F32, AUTO_PRECISIONS),
    ],
)
def test_a_precision_is_one_or_candidates_of_which_the_first_stands(
    stated: object, first: Precision, candidates: tuple[Precision, ...]
) -> None:
    entry = parsed("precision", stated).encoder("text")
    assert (entry.precision, entry.precisions) == (first, candidates)


def test_every_precision_is_a_candidate_of_auto() -> None:
    assert set(AUTO_PRECISIONS) == set(Precision)
    assert AUTO_PRECISIONS[0] is Precision.FP32


@pytest.mark.parametrize(
    ("stated", "auto", "bounds"),
    [
        (None, None, DEFAULT),
        ([{"ids": IDS}], None, BOUNDS),
        ("auto", AutoProfiles(), DEFAULT),
        ({}, AutoProfiles(), DEFAULT),
        ({"bounds": {"ids": IDS}}, AutoProfiles(), BOUNDS),
        ({"auto": {"count": 2}, "bounds": {"ids": IDS}}, AutoProfiles(2), BOUNDS),
        ({"auto": {"count": 6, "memory_mb": 512}}, AutoProfiles(6, 512), DEFAULT),
    ],
)
def test_profiles_are_written_out_or_planned_within_bounds(
    stated: object, auto: AutoProfiles | None, bounds: ShapeRange
) -> None:
    entry = parsed("profiles", stated).encoder("text")
    assert entry.auto == auto
    assert [profile.ranges for profile in entry.profiles] == [(bounds,)]


@pytest.mark.parametrize(
    "stated", [["pad", "split", "cut"], ["cut"], ["split", "pad"], []], ids=str
)
def test_what_may_be_done_outside_is_kept_in_its_order(stated: list[str]) -> None:
    entry = parsed("outside", stated).encoder("text")
    assert entry.outside == tuple(Outside(item) for item in stated)


def test_padding_and_splitting_are_allowed_where_nothing_is_written() -> None:
    entry = parse_pipeline(json.dumps(SMALLEST)).encoder("text")
    assert entry.outside == (Outside.PAD, Outside.SPLIT)


@pytest.mark.parametrize(
    ("path", "value", "where", "message", "remedy"),
    [
        (["precision"], "fp23", "precision", "not one of its choices", "Did you mean 'fp32'?"),
        (["precision"], "Auto", "precision", "not one of its choices", "Did you mean 'auto'?"),
        (["precision"], None, "precision", "is empty", "Use one of: fp32"),
        (["precision"], {"fp32": True}, "precision", "is a mapping", "Use one of"),
        (["precision"], ["fp32", "fp23"], "precision[1]", "not one of its choices", "'fp32'"),
        (["precision"], [], "precision", "at least 1 entry", "Give it"),
        (["precision"], ["fp32", "bf16", "fp32"], "precision[2]", "names fp32 twice", "once"),
        (["profiles"], "aut", "profiles", "not one of its choices", "Did you mean 'auto'?"),
        (["profiles"], 5, "profiles", "is 5, not a list", "in brackets"),
        (["profiles"], [], "profiles", "at least 1 entry", "Give it"),
        (["profiles"], {"auto": {"count": 0}}, "profiles.auto.count", "at least 1", "at least 1"),
        (["profiles"], {"auto": {"count": 33}}, "profiles.auto.count", "at most 32", "at most 32"),
        (["profiles"], {"auto": {"counts": 1}}, "profiles.auto.counts", "no key", "'count'"),
        (["profiles"], {"auto": {"memory_mb": "1GiB"}}, "profiles.auto.memory_mb", "megabytes",
         "Write memory_mb: 1024."),
        (["profiles"], {"bound": {}}, "profiles.bound", "no key 'bound'", "'bounds'"),
        (["profiles"], {"bounds": {}}, "profiles.bounds", "no shapes for the input 'ids'",
         "Add ids"),
        (["profiles"], {"bounds": {"ids": IDS | {"max": [1, 16]}}}, "profiles.bounds.ids",
         "not min <= opt <= max", "in order"),
        (["profiles"], {"bounds": {"ids": {"min": [1, 16], "opt": [1, 16]}}},
         "profiles.bounds.ids.max", "has no 'max'", "Add max"),
        (["profiles"], {"bounds": {"ids": IDS, "mask": IDS}}, "profiles.bounds.mask",
         "not an input", "ids"),
        (["profiles"], [{"ids": {"min": [1, 16], "opt": [1, 16]}}], "profiles[0].ids.max",
         "has no 'max'", "Add max"),
        (["profiles"], [{"ids": IDS | {"most": [8, 16]}}], "profiles[0].ids.most", "no key",
         "min"),
        (["outside"], "pad", "outside", "not a list", "outside: [...]"),
        (["outside"], ["pads"], "outside[0]", "not one of its choices", "Did you mean 'pad'?"),
        (["outside"], ["pad", "pad"], "outside[1]", "names pad twice", "once"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_about_the_way_that_was_meant(
    path: list[Step], value: object, where: str, message: str, remedy: str
) -> None:
    problems = problems_of(changed("encoders", "text", *path, to=value))
    assert [item.path for item in problems] == [f"encoders.text.{where}"], problems
    assert message in problems[0].message
    assert remedy in problems[0].remedy


def with_inputs(*shape: object) -> str:
    value: dict[str, Any] = json.loads(changed("encoders", "text", "profiles", to="auto"))
    value["encoders"]["text"]["inputs"][0]["shape"] = list(shape)
    return json.dumps(value)


def test_planning_needs_a_size_that_changes_and_few_of_them() -> None:
    (fixed,) = problems_of(with_inputs(1, 16))
    assert "fixed sizes only" in fixed.message
    names = [f"dim{number}" for number in range(MAX_PLANNED_DIMS + 1)]
    messages = [item.message for item in problems_of(with_inputs(*names))]
    assert any(f"{len(names)} named dimensions" in message for message in messages)


def test_what_may_be_planned_is_what_can_be() -> None:
    assert MAX_PLANNED_DIMS == MAX_DIMS


tolerances = st.fixed_dictionaries(
    {},
    optional={
        "max_rel": st.floats(1e-6, 10, exclude_min=True),
        "cosine_min": st.floats(-1, 1),
    },
)


@given(st.dictionaries(st.sampled_from(Precision), tolerances), st.floats(0, 1))
@settings(deadline=None)
def test_a_tolerance_is_the_precision_s_own_unless_the_file_says_another(
    stated: dict[Precision, dict[str, float]], task: float
) -> None:
    section = {item.value: limits for item, limits in stated.items()} | {"task": task}
    gates = parse_pipeline(changed("gates", to={"parity": section})).gates
    assert gates.parity_task == task
    for precision, usual in TOLERANCES.items():
        limits = stated.get(precision, {})
        assert gates.tolerance(precision) == Tolerance(
            limits.get("max_rel", usual.max_rel), limits.get("cosine_min", usual.cosine_min)
        )


@pytest.mark.parametrize(
    ("value", "where", "message"),
    [
        ({"int9": {}}, "gates.parity.int9", "There is no key 'int9'"),
        ({"int8": {"max_rel": 0}}, "gates.parity.int8.max_rel", "more than 0"),
        ({"int8": {"cosine_min": 2}}, "gates.parity.int8.cosine_min", "at most 1"),
        ({"int8": {"max_abs": 1}}, "gates.parity.int8.max_abs", "There is no key 'max_abs'"),
        ({"task": 98}, "gates.parity.task", "at most 1"),
    ],
)
def test_a_wrong_tolerance_is_told(value: object, where: str, message: str) -> None:
    (problem,) = problems_of(changed("gates", to={"parity": value}))
    assert problem.path == where
    assert message in problem.message


@pytest.mark.parametrize("flow", ["compatibility", "retention", "build_engines"])
def test_a_flow_may_be_scheduled(flow: str) -> None:
    pipeline = parse_pipeline(changed("schedules", to={flow: "0 3 * * *"}))
    assert pipeline.schedules == ((flow, "0 3 * * *"),)


@pytest.mark.parametrize(
    ("key", "value", "accepted"),
    [
        ("precision", "auto", True), ("precision", ["fp32", "int8"], True),
        ("precision", ["auto"], False), ("precision", [], False),
        ("profiles", "auto", True), ("profiles", {"bounds": {"ids": IDS}}, True),
        ("profiles", [{"ids": IDS}], True), ("profiles", None, True), ("profiles", "none", False),
        ("profiles", {"count": 4}, False), ("outside", [], True), ("outside", ["grow"], False),
    ],
)  # fmt: skip
def test_the_published_schema_says_the_same(key: str, value: object, accepted: bool) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = json.loads(changed("encoders", "text", key, to=value))
    validator = jsonschema.Draft202012Validator(pipeline_schema())
    assert validator.is_valid(document) == accepted
