from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.validators.contracts.smallest import SMALLEST, Step, changed, problems_of
from validators.contracts import documents
from validators.contracts.digest import canonical_json
from validators.contracts.engine import Precision, ShapeRange
from validators.contracts.errors import BadInput
from validators.contracts.pipeline import AdapterEntry, Pipeline, SourceKind
from validators.contracts.pipeline_complaints import FORMS
from validators.contracts.pipeline_file import (
    PipelineFileError,
    parse_pipeline,
    pipeline_schema,
)
from validators.contracts.slo import SloClass
from validators.contracts.tensors import DType, Meaning

STOREFRONT = (Path(__file__).parent / "storefront.yaml").read_text()


def test_the_storefront_file_becomes_values() -> None:
    pipeline = parse_pipeline(STOREFRONT)
    assert pipeline.service == "storefront"
    assert (pipeline.slo.slo_class, pipeline.slo.soft_limit_ms) == (SloClass.INTERACTIVE, 250)
    assert [item.name for item in pipeline.modalities] == ["image", "text", "audio"]
    image = pipeline.encoder("image")
    assert image.source.kind is SourceKind.TORCH
    assert image.contract.inputs[0].value_range == (-1, 1.01)
    assert image.contract.output("features").space == "efficientnet-lite0"
    assert image.profiles[0].ranges == (
        ShapeRange("pixels", (1, 3, 224, 224), (1, 3, 224, 224), (8, 3, 224, 224)),
    )
    assert pipeline.encoder("text").asset_files == (("tokenizer", "text_package:tokenizer.json"),)
    assert pipeline.encoder("text").contract.preprocess.assets == ()
    assert pipeline.branch("audio").then == "text"
    assert pipeline.deploy_backend.backend == "openvino"
    assert pipeline.schedules == (("drift_watch", "*/15 * * * *"),)
    (waiver,) = pipeline.gates.waivers
    assert (waiver.owner, waiver.until_s) == ("ada@example.org", 1_940_630_400.0)


def test_everything_but_four_keys_has_a_default() -> None:
    pipeline = parse_pipeline(json.dumps(SMALLEST))
    assert (pipeline.slo.p99_ms, pipeline.slo.soft_limit_ms) == (300, 250)
    assert [(plan.backend, plan.deploy) for plan in pipeline.backends] == [
        ("openvino", True),
        ("onnxruntime", False),
    ]
    assert pipeline.deployment.canary == (5, 25, 100)
    assert pipeline.encoder("text").precision is Precision.FP32
    assert pipeline.encoder("text").profiles[0].ranges == (
        ShapeRange("ids", (1, 16), (1, 16), (8, 16)),
    )


@pytest.mark.parametrize("key", ["service", "data", "encoders", "branches"])
def test_what_has_no_default_is_asked_for(key: str) -> None:
    value = {name: item for name, item in SMALLEST.items() if name != key}
    messages = [item.message for item in problems_of(json.dumps(value))]
    assert f"There is no {key!r}." in messages


@pytest.mark.parametrize(
    ("path", "value", "where", "message", "remedy"),
    [
        # unknown keys
        (["slo", "p99"], 300, "slo.p99", "There is no key 'p99' in slo.", "'p99_ms'"),
        (["slo", "soft_limit_s"], 1, "slo.soft_limit_s", "no key", "'soft_limit_ms'"),
        (["servise"], "x", "servise", "at the top of the file", "'service'"),
        (["schedules"], {"drift": "* * * * *"}, "schedules.drift", "no key", "'drift_watch'"),
        # wrong units
        (["slo"], {"p99_ms": "300ms"}, "slo.p99_ms", "not a number of milliseconds",
         "Write p99_ms: 300."),
        (["slo"], {"p99_ms": "0.25 s"}, "slo.p99_ms", "the text '0.25 s'", "Write p99_ms: 250."),
        (["slo"], {"peak_memory_mb": "4GiB"}, "slo.peak_memory_mb", "megabytes",
         "Write peak_memory_mb: 4096."),
        (["slo"], {"error_rate": "1%"}, "slo.error_rate", "a share", "Write error_rate: 0.01."),
        (["slo"], {"error_rate": 5}, "slo.error_rate", "at most 1",
         "5 percent is error_rate: 0.05."),
        (["deploy"], {"hold_s": "5 parsecs"}, "deploy.hold_s", "seconds", "without quotes"),
        (["deploy"], {"canary": ["5%", 100]}, "deploy.canary[0]", "whole number of percent",
         "Write canary: 5."),
        # wrong types
        (["encoders", "text", "version"], 1.0, "encoders.text.version", "not a text",
         'Put it in quotes: version: "1.0".'),
        (["deploy"], {"review": {"unattended": "yes"}}, "deploy.review.unattended",
         "not true or false", "unattended: true or unattended: false"),
        (["slo"], None, "slo", "slo is empty, not a mapping.", "or {} for the defaults"),
        (["backends"], {}, "backends", "not a list", "in brackets"),
        (["slo"], {"p99_ms": float("inf")}, "slo.p99_ms", "not a number", "without quotes"),
        # names and choices
        (["service"], "Store_Front", "service", "another form", "a DNS label"),
        (["slo"], {"class": "interactiv"}, "slo.class", "not one of its choices", "'interactive'"),
        (["encoders", "text", "precision"], "fp23", "encoders.text.precision", "not one", "'fp32'"),
        (["data"], {"factory": "no colon"}, "data.factory", "form", "package.module:function"),
        (["encoders", "text", "inputs", 0, "shape"], ["b", 0], "encoders.text.inputs[0].shape[1]",
         "not a dimension", "a size of at least 1"),
        # objectives
        (["slo"], {"p99_ms": 301}, "slo.p99_ms", "answers within 300 ms", "a slower class"),
        (["slo"], {"class": "edge", "p99_ms": 81}, "slo.p99_ms", "within 80 ms (P95)",
         "80 or less"),
        (["slo"], {"p99_ms": 200, "soft_limit_ms": 200}, "slo.soft_limit_ms", "not before p99_ms",
         "below p99_ms"),
        (["branches", "text", "timeout_ms"], 301, "branches.text.timeout_ms",
         "longer than the whole request", "timeout_ms: 250 or less"),
        # names between keys
        (["branches", "text", "encoder"], "texts", "branches.text.encoder", "not under encoders",
         "Did you mean 'text'?"),
        (["branches", "text", "adapter"], {"kind": "identity", "output": "vec", "space": "own"},
         "branches.text.adapter.output", "not an output of the encoder", "Did you mean 'vector'?"),
        (["branches", "text", "adapter"], {"kind": "auto", "output": "vector", "space": "own",
                                           "options": {"scores": "logits"}},
         "branches.text.adapter.options.scores", "not an output of the encoder", "vector"),
        (["branches", "text", "then"], "text", "branches.text.then", "in a circle",
         "End the chain"),
        (["branches", "image"], {"encoder": "text", "then": "text"}, "branches.image.then",
         "no 'decoder'", "Add decoder"),
        (["branches", "text", "decoder"], "text", "branches.text.decoder", "no 'then'", "Add then"),
        (["branches", "smell"], {"encoder": "text"}, "branches.smell", "no modality 'smell'",
         "under modalities"),
        (["branches", "image"], {"encoder": "text"}, "branches.image.encoder", "reads 'text'",
         "whose modality is image"),
        (["encoders", "text", "outputs", 0, "space"], None, "branches.text",
         "no outputs of the encoder 'text' are a global_embedding that names its space",
         "Add an adapter: {kind: ridge, output: vector, space: common}"),
        (["encoders", "text", "outputs"],
         [{"name": name, "dtype": "FP32", "shape": ["batch", 8], "meaning": "global_embedding",
           "space": name} for name in ("one", "two")],
         "branches.text", "2 outputs of the encoder 'text' are a global_embedding",
         "Add an adapter: {kind: identity, output: one, space: one}"),
        (["modalities"], {"text": {"main": True}, "image": {"main": True}},
         "modalities.image.main", "both the main modality", "Keep main"),
        (["modalities"], {"text": {"jitter_ms": 50, "tolerance_ms": 20}},
         "modalities.text.tolerance_ms", "less than its jitter", "tolerance_ms: 50 or more"),
        (["modalities"], {"text": {"gap": "interpolate"}}, "modalities.text.gap",
         "only numbers are interpolated", "hold, drop or refuse"),
        (["modalities"], {"event": {"gap": "interpolate"}}, "modalities.event.gap",
         "nothing between two items of event", "hold, drop or refuse"),
        (["modalities"], {"text": {"gap": "guess"}}, "modalities.text.gap",
         "not one of its choices", "drop"),
        (["modalities"], {"imu": {"hold_ms": 50}}, "modalities.imu.hold_ms", "holds nothing",
         "gap: hold"),
        (["ingest"], {"sample_every_ms": "2s"}, "ingest.sample_every_ms", "not a number",
         "sample_every_ms: 2000"),
        (["ingest"], {"tolerance_ms": {"smell": 5}}, "ingest.tolerance_ms.smell", "no key 'smell'",
         "Use one of"),
        (["ingest"], {"tolerance_ms": {"audio": 0}}, "ingest.tolerance_ms.audio",
         "has to be more than 0", "more than 0"),
        (["ingest"], {"offsets": "ignore"}, "ingest.offsets", "not one of its choices",
         "repair"),
        # encoders
        (["data"], {"folder": "a", "factory": "a:b"}, "data", "exactly one", "{folder: data}"),
        (["encoders", "text", "source"], {}, "encoders.text.source", "exactly one", "onnx"),
        (["encoders", "text", "preprocess"], {"kind": "wordpiece"},
         "encoders.text.preprocess.assets", "no asset called tokenizer", "tokenizer"),
        (["encoders", "text", "inputs", 0, "range"], [1, 1], "encoders.text.inputs[0].range",
         "is empty", "lowest value first"),
        (["encoders", "text", "inputs", 0, "space"], "own", "encoders.text.inputs[0].space",
         "only a global_embedding", "Remove space"),
        (["encoders", "text", "inputs", 0, "time_base"], {"dim": "t", "rate_hz": 25},
         "encoders.text.inputs[0].time_base.dim", "not in its shape", "batch"),
        (["encoders", "text", "inputs", 0, "shape"], ["batch", "tokens"],
         "encoders.text.profiles", "the size of tokens", "Add profiles"),
        # profiles
        (["encoders", "text", "profiles"], [{}], "encoders.text.profiles[0]",
         "no shapes for the input 'ids'", "Add ids"),
        (["encoders", "text", "profiles"],
         [{"ids": {"min": [1], "opt": [1, 16], "max": [1, 16]}}],
         "encoders.text.profiles[0].ids.min", "has 1 dimensions", "Write 2 sizes"),
        (["encoders", "text", "profiles"],
         [{"ids": {"min": [1, 16], "opt": [1, 16], "max": [1, 32]}}],
         "encoders.text.profiles[0].ids.max", "has 32 where the contract of ids fixes 16", "16"),
        (["encoders", "text", "profiles"],
         [{"ids": {"min": [4, 16], "opt": [1, 16], "max": [8, 16]}}],
         "encoders.text.profiles[0].ids", "min <= opt <= max", "in order"),
        # backends and traffic
        (["backends"], [{"backend": "openvino"}], "backends", "No backend is marked",
         "deploy: true"),
        (["backends"], [{"backend": "openvino", "deploy": True},
                        {"backend": "onnxruntime", "deploy": True}],
         "backends[1].deploy", "both marked deploy", "one of them"),
        (["backends"], [{"backend": "tensorrt_rtx", "deploy": True, "targets": ["SM89"]}],
         "backends[0].targets", "not built for it", "Add host"),
        (["backends"], [{"backend": "openvino", "deploy": True, "targets": ["host", "SM89"]}],
         "backends[0].targets", "openvino cannot be built for SM89", "host"),
        (["deploy"], {"canary": [25, 5, 100]}, "deploy.canary", "do not increase", "[5, 25, 100]"),
        (["deploy"], {"canary": [5, 25]}, "deploy.canary", "never finishes", "[5, 25, 100]"),
        (["deploy"], {"canary": [5, 101]}, "deploy.canary[1]", "at most 100", "at most 100"),
        (["deploy"], {"target": "kserve", "review": {"unattended": True}},
         "deploy.review.unattended", "local target only", "unattended: false"),
        (["fusion"], {"quorum": 2}, "fusion.quorum", "of only 1 branches", "quorum: 1"),
        # schedules and waivers
        (["schedules"], {"drift_watch": "every hour"}, "schedules.drift_watch", "2 fields", "*/15"),
        (["gates"], {"waivers": [{"finding": "a/b/c", "owner": "o", "reason": "r",
                                  "until": "2031-02-30"}]},
         "gates.waivers[0].until", "no day", "2030-01-31"),
        (["gates"], {"waivers": [{"finding": "all", "owner": "o", "reason": "r",
                                  "until": "2031-02-28"}]},
         "gates.waivers[0].finding", "another form", "gate/code/subject"),
        # alerts
        (["alerts"], {"drifted": 4}, "alerts.drifted", "of only 3 windows", "drifted: 3"),
        (["alerts"], {"webhook": "http://example.org/hook"},
         "alerts.webhook", "another form", "https address"),
        (["alerts"], {"webhook": "https://me:secret@example.org/"},
         "alerts.webhook", "another form", "no password"),
        (["alerts"], {"on_alarm": "restart"}, "alerts.on_alarm", "one of its choices", "rebuild"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_what_to_write(
    path: list[Step], value: object, where: str, message: str, remedy: str
) -> None:
    found = [
        item
        for item in problems_of(changed(*path, to=value))
        if item.path == where and message in item.message
    ]
    assert len(found) == 1
    assert remedy in found[0].remedy


def test_a_branch_without_adapter_or_decoder_is_in_its_encoder_s_own_space() -> None:
    branch = parse_pipeline(json.dumps(SMALLEST)).branch("text")
    assert branch.adapter == AdapterEntry("identity", "vector", "own")
    stated = {"encoder": "text", "adapter": {"kind": "ridge", "output": "vector", "space": "else"}}
    adapter = parse_pipeline(changed("branches", "text", to=stated)).branch("text").adapter
    assert adapter == AdapterEntry("ridge", "vector", "else")
    assert parse_pipeline(STOREFRONT).branch("audio").adapter is None


def test_a_branch_that_lacks_an_adapter_is_told_with_its_line() -> None:
    text = STOREFRONT.replace(
        "image: {encoder: image, adapter: {kind: ridge, output: features, space: minilm},",
        "image: {encoder: image,",
    ).replace(", space: efficientnet-lite0", "")
    (found,) = problems_of(text)
    assert found.path == "branches.image"
    assert text.splitlines()[found.line - 1].strip().startswith("image: {encoder: image,")
    assert "output: features" in found.remedy


def test_every_mistake_is_reported_at_once_in_line_order() -> None:
    text = (
        STOREFRONT.replace("service: storefront", "service: Storefront")
        .replace("p99_ms: 300", "p99_ms: 300ms")
        .replace("{encoder: text,", "{encoder: txt,")
        .replace("canary: [5, 25, 100]", "canary: [5, 25]")
        .replace("*/15 * * * *", "61 * * * *")
    )
    found = problems_of(text)
    assert [item.path for item in found] == [
        "service",
        "slo.p99_ms",
        "branches.text.encoder",
        "deploy.canary",
        "schedules.drift_watch",
    ]
    lines = text.splitlines()
    for item in found:
        key = item.path.split(".")[-1]
        assert key in lines[item.line - 1]


def test_a_message_is_full_sentences_with_file_and_line() -> None:
    with pytest.raises(PipelineFileError) as caught:
        parse_pipeline("service: x\nslo: {p99_ms: 3s}", path="shop.yaml")
    error = caught.value
    assert isinstance(error, BadInput)
    assert error.where == "shop.yaml:1"
    assert "shop.yaml:2: slo.p99_ms is the text '3s'" in str(error)
    assert set(error.document()) == {"what", "where", "remedy"}
    for item in error.problems:
        assert item.message[0].isupper() or item.message.startswith(item.path.split("[")[0])
        assert item.message.endswith(".")
        assert item.remedy.endswith((".", "?"))


def test_a_file_of_nothing_but_mistakes_gives_a_message_of_bounded_length() -> None:
    with pytest.raises(PipelineFileError) as caught:
        parse_pipeline("\n".join(f"{'k' * 500}{number}: 1" for number in range(150)))
    assert len(caught.value.problems) == 154
    assert str(caught.value).endswith("and 104 more")
    assert len(str(caught.value)) < 20_000


def test_a_duplicate_key_is_refused_with_both_lines() -> None:
    found = problems_of(STOREFRONT + "\nslo: {}\n")
    (last,) = found
    assert "written twice, on line 2 and on line" in last.message
    assert last.line == len(STOREFRONT.splitlines()) + 2


def test_branches_that_run_in_a_circle_are_told_once() -> None:
    text = STOREFRONT.replace(
        "text: {encoder: text, adapter: {kind: identity, output: embedding, space: minilm}}",
        "text: {encoder: text, decoder: speech_decoder, then: audio}",
    )
    found = [item for item in problems_of(text) if "circle" in item.message]
    assert [item.message for item in found] == [
        "The branches text -> audio -> text run in a circle."
    ]


def test_an_edge_service_takes_two_modalities_at_most() -> None:
    text = STOREFRONT.replace("class: interactive, p99_ms: 300, soft_limit_ms: 250", "class: edge")
    text = text.replace(", timeout_ms: 200", "")
    (found,) = problems_of(text)
    assert (found.path, "takes 2 modalities" in found.message) == ("branches", True)


def test_one_dimension_name_has_one_range_in_a_profile() -> None:
    text = STOREFRONT.replace(
        "attention_mask: {min: [1, 1], opt: [1, 16]", "attention_mask: {min: [1, 1], opt: [1, 32]"
    )
    (found,) = problems_of(text)
    assert "The dimension tokens is" in found.message


def test_a_waiver_may_be_dated_without_quotes() -> None:
    assert "until: 2031-06-30" in STOREFRONT
    assert parse_pipeline(STOREFRONT).gates.waivers[0].reason == "no recordings yet"


def test_an_alias_repeats_a_value() -> None:
    text = STOREFRONT.replace(
        "shape: [batch, tokens], meaning: token_ids",
        "shape: &s [batch, tokens], meaning: token_ids",
    )
    text = text.replace(
        "shape: [batch, tokens], meaning: attention_mask", "shape: *s, meaning: attention_mask"
    )
    assert parse_pipeline(text) == parse_pipeline(STOREFRONT)


# --- any text at all -----------------------------------------------------------------------------


def parse_or_refuse(text: str) -> Pipeline | None:
    """None where the text was refused, with at least one problem and a line that exists."""
    try:
        return parse_pipeline(text)
    except PipelineFileError as error:
        assert error.problems
        assert all(1 <= item.line <= text.count("\n") + 2 for item in error.problems)
        assert all(item.message and item.remedy for item in error.problems)
        str(error).encode(errors="strict")
        return None


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    parse_or_refuse(text)


@given(st.text(alphabet="{}[]:,-&*!|>'\"%@#?<~ \n\tab1.\\"))
@settings(max_examples=500, deadline=None)
def test_any_punctuation_is_parsed_or_refused(text: str) -> None:
    parse_or_refuse(text)


@given(
    st.lists(
        st.tuples(
            st.integers(0, len(STOREFRONT)),
            st.integers(0, 40),
            st.sampled_from(
                ["", " ", "\n", "{", "}", "[", "]", ":", "null", "-1", "1e999", "'", '"', "&a ",
                 "*a", "!!binary ", "0x10", ".nan", "99999999999999999999", "\t", "true", "5 %",
                 "<<: {}", "---\n", "\x00", "\ud800", "é", "[[", "? "]
            ),
        ),
        min_size=1, max_size=4,
    )
)  # fmt: skip
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_valid_file_changed_anywhere_is_parsed_or_refused(
    edits: list[tuple[int, int, str]],
) -> None:
    text = STOREFRONT
    for start, length, insert in edits:
        text = text[:start] + insert + text[start + length :]
    parse_or_refuse(text)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["min", "opt", "max", "kind", "name", "x"]), inner)
    ),
    max_leaves=6,
)


def places(value: object, path: tuple[Step, ...] = ()) -> list[tuple[Step, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += places(item, (*path, index))
    return found


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_any_value_in_any_place_is_parsed_or_refused(data: st.DataObject) -> None:
    value = yaml.safe_load(STOREFRONT)
    path = data.draw(st.sampled_from(places(value)))
    target = value
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = data.draw(junk)
    parse_or_refuse(json.dumps(value, default=str))


# --- round trips ---------------------------------------------------------------------------------

names = st.from_regex(r"\A[a-z][a-z0-9_-]{0,12}\Z")
shares = st.floats(0.001, 0.999)


@st.composite
def valid_files(draw: st.DrawFn) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(json.dumps(SMALLEST))
    p99_ms = draw(st.floats(10, 300))
    value["service"] = draw(st.from_regex(r"\A[a-z]([a-z0-9-]{0,20}[a-z0-9])?\Z"))
    value["slo"] = {
        "p99_ms": p99_ms,
        "soft_limit_ms": p99_ms * draw(shares),
        "peak_memory_mb": draw(st.integers(1, 10**6)),
        "error_rate": draw(shares),
    }
    tensor = value["encoders"]["text"]["inputs"][0]
    tensor["name"] = draw(names)
    tensor["dtype"] = draw(st.sampled_from(DType)).value
    tensor["meaning"] = draw(st.sampled_from(Meaning)).value
    low, best, high = sorted(draw(st.tuples(*[st.integers(1, 64)] * 3)))
    shapes = {"min": [low, 16], "opt": [best, 16], "max": [high, 16]}
    value["encoders"]["text"]["profiles"] = [{tensor["name"]: shapes}]
    value["encoders"]["text"]["licence"] = draw(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]))
    )
    steps = draw(st.sets(st.integers(1, 99), max_size=5))
    value["deploy"] = {"canary": [*sorted(steps), 100], "hold_s": draw(st.floats(0, 1e4))}
    return value


@given(valid_files())
@settings(max_examples=150, deadline=None)
def test_what_a_file_says_is_what_the_pipeline_holds(value: dict[str, Any]) -> None:
    pipeline = parse_pipeline(json.dumps(value, ensure_ascii=False))
    assert pipeline.service == value["service"]
    assert pipeline.slo.p99_ms == value["slo"]["p99_ms"]
    assert pipeline.slo.soft_limit_ms == value["slo"]["soft_limit_ms"]
    assert list(pipeline.deployment.canary) == value["deploy"]["canary"]
    contract = pipeline.encoder("text").contract
    assert contract.licence == value["encoders"]["text"]["licence"]
    assert contract.inputs[0].dtype.value == value["encoders"]["text"]["inputs"][0]["dtype"]
    document = canonical_json(pipeline)
    assert documents.load(Pipeline, document) == pipeline
    assert canonical_json(documents.load(Pipeline, document)) == document


@given(valid_files())
@settings(max_examples=50, deadline=None)
def test_a_file_written_as_yaml_or_as_json_is_one_pipeline(value: dict[str, Any]) -> None:
    value["encoders"]["text"]["licence"] = "MIT"
    value["service"] = "service-" + value["service"]
    value["encoders"]["text"]["inputs"][0]["name"] = "ids"
    value["encoders"]["text"]["profiles"] = None
    assert parse_pipeline(yaml.safe_dump(value)) == parse_pipeline(json.dumps(value))


# --- the published schema ------------------------------------------------------------------------


def nodes(value: object) -> list[dict[str, Any]]:
    found = [value] if isinstance(value, dict) else []
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    for item in items:
        found += nodes(item)
    return found


def test_the_schema_accepts_the_storefront_file_and_refuses_an_unknown_key() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = pipeline_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    value = yaml.load(STOREFRONT, Loader=yaml.BaseLoader)  # noqa: S506  (strings only)
    assert value["service"] == "storefront"
    assert list(validator.iter_errors(SMALLEST)) == []
    assert list(validator.iter_errors({**SMALLEST, "extra": 1}))


def test_every_object_of_the_schema_is_closed_and_every_key_described() -> None:
    for node in nodes(pipeline_schema()):
        if node.get("type") != "object":
            continue
        assert node.get("additionalProperties") is False or "propertyNames" in node
        for key, item in node.get("properties", {}).items():
            assert item.get("description") or "$ref" in item, key


def test_every_quantity_of_the_schema_says_its_unit() -> None:
    suffixes = {"_ms": "ms", "_s": "s", "_mb": "MB", "_hz": "Hz"}
    for node in nodes(pipeline_schema()):
        for key, item in node.get("properties", {}).items():
            for suffix, unit in suffixes.items():
                if key.endswith(suffix):
                    assert item.get("x-unit") == unit, key


def test_every_form_of_the_schema_can_be_said_in_words() -> None:
    patterns = {node["pattern"] for node in nodes(pipeline_schema()) if "pattern" in node}
    patterns |= {
        key for node in nodes(pipeline_schema()) for key in node.get("patternProperties", {})
    }
    dimension = r"^[A-Za-z_][A-Za-z0-9_]*$"
    assert patterns - {dimension} <= set(FORMS)
