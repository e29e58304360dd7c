"""The digests' definitions are pinned: whoever changes one renames everything that was stored."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts import documents
from validators.contracts.bundle import (
    BUNDLE_FORMAT,
    Bundle,
    BundledAsset,
    BundledEncoder,
    BundledEngine,
)
from validators.contracts.dataset import Dataset, Media, Sample, Unreadable
from validators.contracts.digest import (
    Digest,
    canonical_json,
    digest_bytes,
    digest_chunks,
    digest_value,
    hex_of,
    require_digest,
    short,
)
from validators.contracts.encoder import EncoderContract, PreprocessSpec, encoder_fingerprint
from validators.contracts.engine import (
    EngineSpec,
    EngineState,
    HostIdentity,
    Precision,
    ShapeProfile,
    ShapeRange,
)
from validators.contracts.errors import BadInput, NotFound
from validators.contracts.pipeline import AdapterEntry, Answer, Branch, Fusion
from validators.contracts.slo import Slo, SloClass
from validators.contracts.tensors import DType, Meaning, StateKind, TensorSpec, TimeBase
from validators.contracts.verdict import Outcome

GOLDEN: dict[str, str] = json.loads((Path(__file__).parent / "golden_digests.json").read_text())

A, B, C = (digest_bytes(letter) for letter in (b"a", b"b", b"c"))
PREPROCESS = PreprocessSpec("image", (("mean", 127), ("size", 224)), (("table", A),))
CONTRACT = EncoderContract(
    name="image",
    version="1.0.0",
    modality="image",
    inputs=(
        TensorSpec(
            "pixels", DType.FP32, ("batch", 3, 224, 224), Meaning.PIXELS, value_range=(-1, 1.01)
        ),
    ),
    outputs=(
        TensorSpec(
            "features", DType.FP32, ("batch", 1280), Meaning.GLOBAL_EMBEDDING, space="image"
        ),
        TensorSpec(
            "frames", DType.FP32, ("batch", "t", 8), Meaning.FRAME_FEATURES,
            time_base=TimeBase("t", 25, 12.5),
        ),
    ),
    preprocess=PREPROCESS,
    state=StateKind.STATELESS,
    licence="Apache-2.0",
)  # fmt: skip
HOST = HostIdentity("cpu", "x86_64", ("avx2", "fma"))
ENGINE = EngineSpec(
    encoder="image",
    onnx=A,
    backend="openvino",
    backend_version="2026.4.1",
    precision=Precision.FP32,
    profiles=(
        ShapeProfile((ShapeRange("pixels", (1, 3, 2, 2), (1, 3, 2, 2), (8, 3, 2, 2)),)),
    ),
    target=HOST,
    flags=(("threads", "1"),),
)  # fmt: skip
DATASET = Dataset(
    samples=(
        Sample(
            id="cat",
            media=(Media("image", A, "image/png", (("brightness", 12.5),)),),
            tags=(("sensor", "camera"),),
            captured_ms=0,
        ),
    ),
    unreadable=(Unreadable("dog", "corrupt-image", "not a PNG"),),
)
BUNDLE = Bundle(
    format=BUNDLE_FORMAT,
    service="storefront",
    slo=Slo(SloClass.INTERACTIVE, 300, 250, 4096, 0.25, 0.01),
    encoders=(BundledEncoder(CONTRACT, A, B),),
    branches=(Branch("image", "image", AdapterEntry("ridge", "features", "minilm")),),
    fusion=Fusion("any"),
    answer=Answer("retrieval"),
    engines=(
        BundledEngine(
            "image", "openvino", HOST, Precision.FP32, EngineState.VERIFIED, True, A, B, C
        ),
    ),
    assets=(BundledAsset("catalogue.json", A, 12),),
    dataset=A,
    certificate=B,
    verdicts=C,
)

DIGESTS: dict[str, Callable[[], Digest]] = {
    "empty bytes": lambda: digest_bytes(b""),
    "value": lambda: digest_value("kind", {"b": [1, 2.5, None, True], "a": "é"}),
    "preprocess": lambda: PREPROCESS.digest,
    "encoder-contract": lambda: CONTRACT.digest,
    "encoder fingerprint": lambda: encoder_fingerprint(CONTRACT, A),
    "engine": lambda: ENGINE.key,
    "dataset": lambda: DATASET.digest,
    "bundle": lambda: BUNDLE.digest,
}


@pytest.mark.parametrize("name", DIGESTS)
def test_a_digest_is_what_it_always_was(name: str) -> None:
    assert DIGESTS[name]() == GOLDEN[name]


def test_no_digest_is_without_its_golden_value() -> None:
    assert set(DIGESTS) == set(GOLDEN)


def test_the_canonical_form_is_what_it_always_was() -> None:
    value = {"b": (1, 2.0, -0.5), "a": {"é": None}, "c": Outcome.PASS, "d": {"x", "y"}}
    written = '{"a":{"é":null},"b":[1,2,-0.5],"c":"PASS","d":["x","y"]}'
    assert canonical_json(value) == written.encode()


def test_a_value_is_digested_with_its_kind_around_it() -> None:
    written = '{"kind":"kind","value":{"a":"é","b":[1,2.5,null,true]}}'
    assert digest_bytes(written.encode()) == GOLDEN["value"]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
def test_writing_what_was_read_gives_the_same_bytes(value: object) -> None:
    document = canonical_json(value)
    assert json.loads(document) == value
    assert canonical_json(json.loads(document)) == document


@given(st.dictionaries(st.text("abc", min_size=1), st.integers(), min_size=2))
def test_the_order_of_keys_does_not_matter(value: dict[str, int]) -> None:
    turned = dict(reversed(value.items()))
    assert digest_value("kind", turned) == digest_value("kind", value)


@given(json_values, st.text("abc", min_size=1), st.text("abc", min_size=1))
def test_two_kinds_never_share_a_digest(value: object, one: str, other: str) -> None:
    assert (digest_value(one, value) == digest_value(other, value)) == (one == other)


@given(st.lists(st.binary(max_size=9)))
def test_a_stream_has_the_digest_of_its_bytes(chunks: list[bytes]) -> None:
    assert digest_chunks(chunks) == digest_bytes(b"".join(chunks))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: "a"}, b"bytes", object()])
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(BadInput):
        canonical_json(value)


@pytest.mark.parametrize(
    "text", ["", "sha256:", "sha256:" + "0" * 63, "sha256:" + "A" * 64, "md5:" + "0" * 64, "0" * 64]
)
def test_only_a_digest_is_a_digest(text: str) -> None:
    with pytest.raises(BadInput, match="not a digest"):
        require_digest(text)


def test_the_forms_of_a_digest_agree() -> None:
    assert require_digest(A) == A == "sha256:" + hex_of(A)
    assert hex_of(A).startswith(short(A))
    assert len(short(A)) == 12


CHANGES: dict[str, object] = {
    "encoder": "text",
    "onnx": B,
    "backend": "onnxruntime",
    "backend_version": "2026.4.2",
    "precision": Precision.BF16,
    "profiles": (),
    "target": HostIdentity("cpu", "x86_64", ("avx2",)),
    "flags": (),
}


@pytest.mark.parametrize("field", [item.name for item in dataclasses.fields(EngineSpec)])
def test_nothing_that_decides_an_engine_is_forgotten_in_its_key(field: str) -> None:
    changed = dataclasses.replace(ENGINE, **{field: CHANGES[field]})  # type: ignore[arg-type]
    assert changed.key != ENGINE.key


def test_the_preprocessing_is_part_of_the_fingerprint() -> None:
    other = dataclasses.replace(CONTRACT, preprocess=dataclasses.replace(PREPROCESS, assets=()))
    assert encoder_fingerprint(other, A) != encoder_fingerprint(CONTRACT, A)
    assert encoder_fingerprint(CONTRACT, B) != encoder_fingerprint(CONTRACT, A)


def test_a_bundle_is_read_back_under_its_own_name() -> None:
    again = documents.load(Bundle, BUNDLE.document())
    assert again == BUNDLE
    assert again.digest == BUNDLE.digest


def test_a_bundle_lists_what_a_host_needs_and_finds_its_parts() -> None:
    assert BUNDLE.objects() == {A, B, C}
    assert BUNDLE.encoder("image").contract is CONTRACT
    assert BUNDLE.deployed_engine("image").engine == B
    assert BUNDLE.asset("catalogue.json").size_bytes == 12
    for missing in (BUNDLE.encoder, BUNDLE.deployed_engine, BUNDLE.asset):
        with pytest.raises(NotFound, match="'audio'"):
            missing("audio")
