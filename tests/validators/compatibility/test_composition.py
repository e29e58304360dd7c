from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from validators.compatibility.composition import check_composition
from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.engine import Precision
from validators.contracts.pipeline import (
    AdapterEntry,
    Branch,
    EncoderEntry,
    EncoderSource,
    Pipeline,
    SourceKind,
)
from validators.contracts.pipeline_file import parse_pipeline
from validators.contracts.tensors import DType, Meaning, StateKind, TensorSpec
from validators.contracts.verdict import Finding, Outcome

TESTS = Path(__file__).parents[2]
SCENARIOS = TESTS / "scenarios" / "gates" / "contracts"
STOREFRONT = TESTS / "validators" / "contracts" / "storefront.yaml"


def read(path: Path) -> Pipeline:
    return parse_pipeline(path.read_text(), path=path.name)


@pytest.fixture
def storefront() -> Pipeline:
    return read(STOREFRONT)


def with_encoder(pipeline: Pipeline, name: str, **changes: Any) -> Pipeline:
    """The pipeline with one encoder's contract changed."""
    entries = tuple(
        dataclasses.replace(item, contract=dataclasses.replace(item.contract, **changes))
        if item.name == name
        else item
        for item in pipeline.encoders
    )
    return dataclasses.replace(pipeline, encoders=entries)


def with_branch(pipeline: Pipeline, branch: Branch) -> Pipeline:
    kept = tuple(item for item in pipeline.branches if item.modality != branch.modality)
    return dataclasses.replace(pipeline, branches=(*kept, branch))


def tensor(name: str, meaning: Meaning, *shape: int | str, **more: object) -> TensorSpec:
    spec = TensorSpec(name, DType.FP32, shape, meaning)
    return dataclasses.replace(spec, **more)  # type: ignore[arg-type]


def worst(pipeline: Pipeline) -> list[Finding]:
    verdict = check_composition(pipeline)
    return [item for item in verdict.findings if item.outcome is verdict.outcome]


def test_the_scenario_of_unlike_encoders_is_blocked_naming_both_ends_and_the_adapter() -> None:
    verdict = check_composition(read(SCENARIOS / "blocking.yaml"))
    assert (verdict.gate, verdict.outcome) == ("contracts", Outcome.FAIL)
    picture = next(item for item in verdict.findings if item.subject.startswith("clip."))
    assert picture.subject == "clip.embedding -> vision_language.patches"
    assert picture.measured == "embedding FP32 [1, 512] (global_embedding)"
    assert picture.limit == "patches FP32 [batch, patches, 1024] (patch_features)"
    assert "from before the pooling" in picture.remedy
    speech = next(item for item in verdict.findings if item.subject.startswith("whisper."))
    assert speech.measured == "logits FP32 [1, tokens, 51865] (logits)"
    assert "learned connector → patch_features [batch, patches, 1024]" in speech.remedy
    assert not any(item.waivable for item in verdict.findings)


def test_the_borderline_scenario_passes_and_warns_of_one_lost_dimension() -> None:
    verdict = check_composition(read(SCENARIOS / "borderline.yaml"))
    assert verdict.outcome is Outcome.WARN
    assert [item.code for item in verdict.findings] == ["lossy-projection"]


def test_a_pipeline_whose_parts_fit_has_every_junction_examined(storefront: Pipeline) -> None:
    verdict = check_composition(storefront)
    assert verdict.outcome is Outcome.WARN
    assert dict(verdict.metrics)["junctions"] == 5


def test_patches_and_frames_forced_into_a_narrow_space_are_flagged(storefront: Pipeline) -> None:
    narrow = tensor("vector", Meaning.GLOBAL_EMBEDDING, "batch", 128, space="common")
    pipeline = dataclasses.replace(
        storefront,
        encoders=(
            entry("words", "text", narrow),
            entry("vision", "image", tensor("pooled", Meaning.GLOBAL_EMBEDDING, "batch", 37632)),
            entry("sound", "audio", tensor("pooled", Meaning.GLOBAL_EMBEDDING, "batch", 1300)),
        ),
        branches=(
            Branch("text", "words"),
            Branch("image", "vision", AdapterEntry("ridge", "pooled", "common")),
            Branch("audio", "sound", AdapterEntry("ridge", "pooled", "common")),
        ),
    )
    verdict = check_composition(pipeline)
    assert verdict.outcome is Outcome.WARN
    assert [(item.code, item.measured) for item in verdict.findings] == [
        ("lossy-projection", "37632 numbers in global_embedding [batch, 37632]"),
        ("lossy-projection", "1300 numbers in global_embedding [batch, 1300]"),
    ]


def test_unpooled_patches_are_refused_where_an_adapter_reads_rows(storefront: Pipeline) -> None:
    patches = tensor("features", Meaning.PATCH_FEATURES, "batch", 49, 1280)
    found = worst(with_encoder(storefront, "image", outputs=(patches,)))
    assert [item.code for item in found] == ["meaning"]
    assert "Pool patch_features [batch, 49, 1280]" in found[0].remedy


def test_branches_that_end_in_different_spaces_are_refused(storefront: Pipeline) -> None:
    adapter = AdapterEntry("identity", "features", "efficientnet-lite0")
    (found,) = worst(with_branch(storefront, Branch("image", "image", adapter)))
    assert found.code == "space"
    assert found.remedy == "Project 1280 → 384 into space minilm by a ridge map."


def test_an_identity_adapter_cannot_rename_a_space(storefront: Pipeline) -> None:
    adapter = AdapterEntry("identity", "features", "minilm")
    codes = {
        item.code for item in worst(with_branch(storefront, Branch("image", "image", adapter)))
    }
    assert codes == {"space", "dimension"}


def test_a_space_that_no_branch_defines_is_refused(storefront: Pipeline) -> None:
    pipeline = dataclasses.replace(
        storefront,
        branches=(Branch("image", "image", AdapterEntry("ridge", "features", "nowhere")),),
    )
    assert [item.code for item in worst(pipeline)] == ["space-undefined"]


@pytest.mark.parametrize(
    ("output", "fits"), [("logits", True), ("features", False)], ids=["scores", "features"]
)
def test_class_embeddings_are_combined_by_scores_only(
    storefront: Pipeline, output: str, fits: bool
) -> None:
    branch = Branch("image", "image", AdapterEntry("conse", output, "minilm"))
    verdict = check_composition(with_branch(storefront, branch))
    assert (verdict.outcome < Outcome.FAIL) is fits


def test_a_half_precision_output_names_the_cast(storefront: Pipeline) -> None:
    half = tensor("embedding", Meaning.GLOBAL_EMBEDDING, "batch", 384, space="minilm")
    half = dataclasses.replace(half, dtype=DType.FP16)
    (found,) = worst(with_encoder(storefront, "text", outputs=(half,)))
    assert found.remedy == "Cast FP16→FP32."


def test_a_decoder_of_another_width_is_refused(storefront: Pipeline) -> None:
    frames = tensor("features", Meaning.FRAME_FEATURES, "batch", 1500, 512)
    (found,) = worst(with_encoder(storefront, "speech", outputs=(frames,)))
    assert found.subject == "speech.features -> speech_decoder.features"
    assert found.remedy == "Project 512 → 384 by a linear map."


def test_a_decoder_is_fed_by_the_output_that_fits_it_best(storefront: Pipeline) -> None:
    frames = storefront.encoder("speech").contract.outputs
    extra = tensor("pooled", Meaning.GLOBAL_EMBEDDING, "batch", 384, space="speech")
    pipeline = with_encoder(storefront, "speech", outputs=(extra, *frames))
    assert check_composition(pipeline).outcome is Outcome.WARN


def test_a_decoder_reads_the_output_of_its_inputs_name(storefront: Pipeline) -> None:
    frames = tensor("frames", Meaning.FRAME_FEATURES, "batch", 1500, 384)
    (found,) = worst(with_encoder(storefront, "speech", outputs=(frames,)))
    assert found.code == "name"
    assert found.remedy == "Give speech.frames and speech_decoder.features one name."


@pytest.mark.parametrize(("scores", "fits"), [("logits", True), ("features", False)])
def test_a_choice_left_to_the_release_has_to_fit_both_ways(
    storefront: Pipeline, scores: str, fits: bool
) -> None:
    adapter = AdapterEntry("auto", "features", "minilm", (("scores", scores),))
    verdict = check_composition(with_branch(storefront, Branch("image", "image", adapter)))
    assert (verdict.outcome < Outcome.FAIL) is fits


def test_a_decoder_that_keeps_a_cache_is_refused(storefront: Pipeline) -> None:
    pipeline = with_encoder(storefront, "speech_decoder", state=StateKind.AUTOREGRESSIVE_CACHE)
    assert [item.code for item in worst(pipeline)] == ["state"]


def test_an_encoder_is_no_decoder(storefront: Pipeline) -> None:
    branch = Branch("audio", "speech", decoder="image", then="text")
    assert "meaning" in {item.code for item in worst(with_branch(storefront, branch))}


def test_decoded_text_cannot_go_through_a_picture_branch(storefront: Pipeline) -> None:
    branch = Branch("audio", "speech", decoder="speech_decoder", then="image")
    (found,) = worst(with_branch(storefront, branch))
    assert found.subject == "speech_decoder -> image.image"


def entry(name: str, modality: str, output: TensorSpec) -> EncoderEntry:
    contract = EncoderContract(
        name=name,
        version="1.0.0",
        modality=modality,
        inputs=(tensor("features", Meaning.WAVEFORM, "batch", 16),),
        outputs=(output,),
        preprocess=PreprocessSpec("tensor"),
    )
    return EncoderEntry(contract, EncoderSource(SourceKind.ONNX, "m.onnx"), Precision.FP32, ())
