"""Where vectors come from: told with every answer, insisted on, and checked in catalogues."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np
import pytest

from services.gateway.gateway import Gateway
from services.gateway.grpc import inference_pb2 as pb
from services.gateway.grpc import modalgate_pb2 as pbm
from services.gateway.origins import ExpectedOrigin, origins_of_headers, parse_origins
from services.gateway.revision import load_revision
from tests.services.gateway import toy as t
from tests.services.gateway.grpc.test_endpoints import ANSWER, INFERENCE, Stub, code_of, stub
from validators.contracts.bundle import BundledAsset
from validators.contracts.digest import canonical_json, digest_bytes, hex_of
from validators.contracts.errors import BadInput, NotFound, Refused
from validators.contracts.origin import VectorOrigin
from validators.contracts.pipeline import Answer

__all__ = ["stub"]

OTHER = digest_bytes(b"another")


@pytest.fixture
def image(gateway: Gateway) -> VectorOrigin:
    served = gateway.revisions.find("r1")
    assert served is not None
    return served.revision.encoder("image").origin


def insisting(image: VectorOrigin) -> list[tuple[str, int]]:
    """What a caller may write of its stored image vectors, and the answer's status."""
    return [
        (f"image={image.encoder}", 200),
        (f"image={image.encoder}/{image.engine}", 200),
        (f"image={image.encoder}/{OTHER}", 409),
        (f"image={OTHER}", 409),
        (f"image={image.encoder}, text={OTHER}", 409),
        (f"lidar={image.encoder}", 409),
        ("image=sha256:short", 400),
        ("image", 400),
        (image.encoder, 400),  # of which encoder?
        ("," * 40, 400),
        ("", 400),
    ]


async def test_a_caller_may_insist_on_the_version_its_vectors_come_from(
    client: httpx.AsyncClient, gateway: Gateway, image: VectorOrigin
) -> None:
    for text, status in insisting(image):
        answer = await client.post(
            "/v1/answer", json={"text": "red"}, headers={"x-modalgate-origin": text}
        )
        assert answer.status_code == status, (text, answer.text)
        assert status != 409 or answer.json()["error"]["remedy"]
    (stats,) = gateway.admin_handlers.stats()
    assert stats.errors == 0  # no fault of the revision


async def test_one_encoder_needs_no_name(client: httpx.AsyncClient, image: VectorOrigin) -> None:
    tensor = {"name": "pixels", "shape": [1, 3, 8, 8], "datatype": "FP32", "data": [0.5] * 192}
    for origin, status in (
        (image.encoder, 200), (f"{image.encoder}/{image.engine}", 200), (OTHER, 409), (7, 400)
    ):  # fmt: skip
        body = {"inputs": [tensor], "parameters": {"modalgate.origin": origin}}
        response = await client.post("/v2/models/image/infer", json=body)
        assert response.status_code == status, response.text
    told = (await client.post("/v2/models/image/infer", json={"inputs": [tensor]})).json()
    assert told["parameters"]["modalgate.encoder"] == image.encoder
    assert told["parameters"]["modalgate.engine"] == image.engine


@pytest.mark.parametrize("origin", [0, False, "", None, [], ["sha256:short"], {}, 0.0])
async def test_an_origin_that_cannot_be_read_is_never_taken_for_none(
    client: httpx.AsyncClient, origin: object
) -> None:
    tensor = {"name": "pixels", "shape": [1, 3, 8, 8], "datatype": "FP32", "data": [0.5] * 192}
    body = {"inputs": [tensor], "parameters": {"modalgate.origin": origin}}
    response = await client.post("/v2/models/image/infer", json=body)
    assert response.status_code == 400, response.text


async def test_a_second_header_is_refused_not_ignored(
    client: httpx.AsyncClient, stub: Stub, image: VectorOrigin
) -> None:
    right, wrong = f"image={image.encoder}", f"image={OTHER}"
    for pair in ((right, wrong), (wrong, right), (right, right)):
        headers = [("x-modalgate-origin", text) for text in pair]
        answer = await client.post("/v1/answer", json={"text": "red"}, headers=headers)
        assert answer.status_code == 400, answer.text
        call = stub(
            ANSWER, pbm.MultiModalRequest(text="red"), pbm.MultiModalAnswer,
            metadata=tuple(headers),
        )  # fmt: skip
        assert await code_of(call) is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "parameter",
    [
        pb.InferParameter(), pb.InferParameter(bool_param=False), pb.InferParameter(int64_param=0),
        pb.InferParameter(string_param=""),
    ],
)  # fmt: skip
async def test_grpc_takes_no_unreadable_origin_for_none(
    stub: Stub, parameter: pb.InferParameter
) -> None:
    tensor = pb.ModelInferRequest.InferInputTensor(
        name="pixels", datatype="FP32", shape=[1, 3, 8, 8]
    )
    infer = pb.ModelInferRequest(
        model_name="image", inputs=[tensor],
        raw_input_contents=[np.zeros((1, 3, 8, 8), np.float32).tobytes()],
        parameters={"modalgate.origin": parameter},
    )  # fmt: skip
    call = stub(INFERENCE + "ModelInfer", infer, pb.ModelInferResponse)
    assert await code_of(call) is grpc.StatusCode.INVALID_ARGUMENT


async def test_grpc_says_and_checks_the_same(stub: Stub, image: VectorOrigin) -> None:
    request = pbm.MultiModalRequest(image_bytes=[t.picture("red")])
    for origin, code in ((image.encoder, None), (OTHER, grpc.StatusCode.ABORTED)):
        metadata = (("x-modalgate-origin", f"image={origin}"),)
        call = stub(ANSWER, request, pbm.MultiModalAnswer, metadata=metadata)
        if code is not None:
            assert await code_of(call) is code
            continue
        answer = await call
        assert dict(answer.encoders) == {"image": image.encoder}
        assert dict(answer.engines) == {"image": image.engine}
    tensor = pb.ModelInferRequest.InferInputTensor(
        name="pixels", datatype="FP32", shape=[1, 3, 8, 8]
    )
    infer = pb.ModelInferRequest(
        model_name="image", inputs=[tensor],
        raw_input_contents=[np.zeros((1, 3, 8, 8), np.float32).tobytes()],
        parameters={"modalgate.origin": pb.InferParameter(string_param=OTHER)},
    )  # fmt: skip
    refused = stub(INFERENCE + "ModelInfer", infer, pb.ModelInferResponse)
    assert await code_of(refused) is grpc.StatusCode.ABORTED
    del infer.parameters["modalgate.origin"]
    told = await stub(INFERENCE + "ModelInfer", infer, pb.ModelInferResponse)
    assert told.parameters["modalgate.encoder"].string_param == image.encoder
    assert told.parameters["modalgate.engine"].string_param == image.engine


def test_origins_are_read_as_they_are_written() -> None:
    one, two = digest_bytes(b"1"), digest_bytes(b"2")
    assert parse_origins(f"{one}, a={two}/{one}") == (
        ExpectedOrigin(None, one), ExpectedOrigin("a", two, one)
    )  # fmt: skip
    assert origins_of_headers([]) == ()
    unreadable: list[object] = [
        "x", f"a={one}/", f"a={one}/x", f"{one},", "", " ", 3, 0, True, False, [], None
    ]  # fmt: skip
    for wrong in unreadable:
        with pytest.raises(BadInput):
            parse_origins(wrong)


# -- catalogues -------------------------------------------------------------------------------


def with_origins(toy: t.Toy, change: Any) -> t.Toy:
    """The toy's bundle, signed again with other origins in it; None: with none."""
    bundle = load_bundle(toy)
    assets = [item for item in bundle.assets if item.name != "catalogue-origins.json"]
    data = None
    if change is not None:
        served = load_revision("x", toy.path, toy.loaders())
        origins = {"image": served.encoder("image").origin, "text": served.encoder("text").origin}
        data = canonical_json(change(origins))
        assets.append(BundledAsset("catalogue-origins.json", digest_bytes(data), len(data)))
    made = t.make_toy(toy.path.parent, assets=tuple(assets))
    if data is not None:
        (made.path / "objects" / hex_of(digest_bytes(data))).write_bytes(data)
    return made


def load_bundle(toy: t.Toy) -> Any:
    from services.gateway.folder import open_folder

    return open_folder(toy.path, toy.loaders().verifier).bundle


def of_another_version(origins: dict[str, VectorOrigin]) -> dict[str, VectorOrigin]:
    return {**origins, "image": dataclasses.replace(origins["image"], encoder=OTHER)}


def of_an_engine_nobody_compared(origins: dict[str, VectorOrigin]) -> dict[str, VectorOrigin]:
    return {**origins, "text": dataclasses.replace(origins["text"], engine=OTHER)}


def without_the_texts(origins: dict[str, VectorOrigin]) -> dict[str, VectorOrigin]:
    return {"image": origins["image"]}


@pytest.mark.parametrize(
    "change", [None, of_another_version, of_an_engine_nobody_compared, without_the_texts]
)
def test_a_catalogue_that_would_mix_is_refused_when_it_is_loaded(toy: t.Toy, change: Any) -> None:
    odd = with_origins(toy, change)
    with pytest.raises(Refused) as caught:
        load_revision("r1", odd.path, odd.loaders())
    assert caught.value.remedy


def test_a_catalogue_of_the_same_engines_is_loaded(toy: t.Toy) -> None:
    load_revision("r1", with_origins(toy, lambda origins: origins).path, toy.loaders())


def test_a_bundle_that_embeds_needs_no_catalogue(toy: t.Toy) -> None:
    bare = t.make_toy(
        toy.path.parent, answer=Answer("embedding"),
        assets=tuple(a for a in load_bundle(toy).assets if not a.name.startswith("catalogue")),
    )  # fmt: skip
    assert load_revision("r1", bare.path, bare.loaders()).catalogue is None


async def test_what_is_no_file_is_not_found(tmp_path: Path, gateway: Gateway) -> None:
    with pytest.raises(NotFound):
        await gateway.admin_handlers.replace("r1", "image", tmp_path / "m", tmp_path / "e")
