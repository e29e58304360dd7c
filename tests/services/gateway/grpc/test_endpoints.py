"""The three gRPC services over a real channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import numpy as np
import pytest

from services.gateway.gateway import Gateway
from services.gateway.grpc import health_pb2 as pbh
from services.gateway.grpc import inference_pb2 as pb
from services.gateway.grpc import modalgate_pb2 as pbm
from services.gateway.scheduler import QueueLimits
from services.gateway.settings import GatewaySettings
from tests.services.gateway import toy as t
from tests.services.gateway.conftest import StartGateway, until

INFERENCE = "/inference.GRPCInferenceService/"
ANSWER = "/modalgate.v1.MultiModal/Answer"


class Stub:
    """Calls a method by its full name, as any client would on the wire."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.aio.insecure_channel(address)

    def __call__(self, method: str, request: Any, answer: Any, **options: Any) -> Any:
        call: Any = self.channel.unary_unary(
            method,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        return call(request, **options)


@pytest.fixture
async def stub(gateway: Gateway) -> AsyncIterator[Stub]:
    made = Stub(gateway.grpc_address)
    yield made
    await made.channel.close()


async def code_of(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert caught.value.details()
    code: grpc.StatusCode = caught.value.code()
    return code


async def test_the_server_says_that_it_lives_and_what_it_has(stub: Stub) -> None:
    live = await stub(INFERENCE + "ServerLive", pb.ServerLiveRequest(), pb.ServerLiveResponse)
    ready = await stub(INFERENCE + "ServerReady", pb.ServerReadyRequest(), pb.ServerReadyResponse)
    health = await stub(
        "/grpc.health.v1.Health/Check", pbh.HealthCheckRequest(), pbh.HealthCheckResponse
    )
    assert live.live and ready.ready
    assert health.status == pbh.HealthCheckResponse.SERVING
    metadata = await stub(
        INFERENCE + "ServerMetadata", pb.ServerMetadataRequest(), pb.ServerMetadataResponse
    )
    assert metadata.name == "modalgate"
    model = await stub(
        INFERENCE + "ModelMetadata",
        pb.ModelMetadataRequest(name="text"),
        pb.ModelMetadataResponse,
    )
    assert [(i.name, i.datatype, list(i.shape)) for i in model.inputs] == [
        ("input_ids", "INT64", [-1, -1]),
        ("attention_mask", "INT64", [-1, -1]),
    ]
    asked = pb.ModelReadyRequest(name=t.SERVICE, version="r1")
    assert (await stub(INFERENCE + "ModelReady", asked, pb.ModelReadyResponse)).ready


def infer_request(**changes: Any) -> pb.ModelInferRequest:
    tensor = pb.ModelInferRequest.InferInputTensor(
        name="pixels", datatype="FP32", shape=[1, 3, 8, 8]
    )
    fields = {
        "model_name": "image",
        "id": "7",
        "inputs": [tensor],
        "raw_input_contents": [np.ones((1, 3, 8, 8), "<f4").tobytes()],
    }
    return pb.ModelInferRequest(**{**fields, **changes})


async def test_raw_and_typed_contents_give_the_same_tensors(stub: Stub) -> None:
    typed = pb.ModelInferRequest.InferInputTensor(
        name="pixels",
        datatype="FP32",
        shape=[1, 3, 8, 8],
        contents=pb.InferTensorContents(fp32_contents=[1.0] * 192),
    )
    for request in (infer_request(), infer_request(inputs=[typed], raw_input_contents=[])):
        answer = await stub(INFERENCE + "ModelInfer", request, pb.ModelInferResponse)
        assert (answer.id, answer.model_name, answer.model_version) == ("7", "image", "r1")
        assert [(o.name, o.datatype, list(o.shape)) for o in answer.outputs] == [
            ("features", "FP32", [1, 3])
        ]
        assert np.frombuffer(answer.raw_output_contents[0], "<f4").tolist() == [1, 1, 1]


def _tensor(**fields: Any) -> pb.ModelInferRequest.InferInputTensor:
    base: dict[str, Any] = {"name": "pixels", "datatype": "FP32", "shape": [1, 3, 8, 8]}
    return pb.ModelInferRequest.InferInputTensor(**{**base, **fields})


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"model_name": "nothing"}, "NOT_FOUND"),
        ({"model_version": "r9"}, "NOT_FOUND"),
        ({"id": "a b"}, "INVALID_ARGUMENT"),
        ({"inputs": []}, "INVALID_ARGUMENT"),
        ({"raw_input_contents": [b"x"]}, "INVALID_ARGUMENT"),
        ({"raw_input_contents": [b"x", b"x"]}, "INVALID_ARGUMENT"),
        ({"raw_input_contents": []}, "INVALID_ARGUMENT"),
        ({"inputs": [_tensor(datatype="FP16")], "raw_input_contents": []}, "INVALID_ARGUMENT"),
        ({"inputs": [_tensor(datatype="FP12")]}, "INVALID_ARGUMENT"),
        ({"inputs": [_tensor(shape=[3, 1, 8, 8])]}, "INVALID_ARGUMENT"),
        ({"inputs": [_tensor(shape=[-1])]}, "INVALID_ARGUMENT"),
    ],
)
async def test_tensors_that_do_not_fit_are_refused(
    stub: Stub, changes: dict[str, Any], code: str
) -> None:
    call = stub(INFERENCE + "ModelInfer", infer_request(**changes), pb.ModelInferResponse)
    assert await code_of(call) is grpc.StatusCode[code]


@pytest.mark.parametrize("colour", t.COLOURS)
async def test_one_message_holds_everything_a_user_sends(stub: Stub, colour: str) -> None:
    request = pbm.MultiModalRequest(
        session_id="s-1",
        image_bytes=[t.picture(colour), t.picture(colour, "JPEG")],
        text=colour,
        audio_pcm=t.pcm16(t.tone(colour)),
        metadata={"page": "1"},
    )
    answer = await stub(ANSWER, request, pbm.MultiModalAnswer, metadata=(("x-request-id", "q"),))
    assert (answer.request_id, answer.session_id, answer.revision) == ("q", "s-1", "r1")
    assert answer.items[0].id == colour
    assert answer.transcript == colour
    assert {name: branch.status for name, branch in answer.branches.items()} == dict.fromkeys(
        ("image", "text", "audio"), "used"
    )
    assert not answer.degraded
    assert set(answer.encoders) == {"image", "text", "speech", "speech_decoder"}
    assert set(answer.engines) == set(answer.encoders)


@pytest.mark.parametrize(
    "request_",
    [
        pbm.MultiModalRequest(),
        pbm.MultiModalRequest(text=""),
        pbm.MultiModalRequest(audio_pcm=b"odd"),
        pbm.MultiModalRequest(image_bytes=[b"rubbish"]),
        pbm.MultiModalRequest(image_bytes=[b""]),
        pbm.MultiModalRequest(text="red", session_id="a b"),
    ],
)
async def test_a_message_that_cannot_be_read_is_refused(
    stub: Stub, request_: pbm.MultiModalRequest
) -> None:
    call = stub(ANSWER, request_, pbm.MultiModalAnswer)
    assert await code_of(call) is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_full_queue_is_resource_exhausted_and_says_when_to_come_back(
    start_gateway: StartGateway,
) -> None:
    gate = t.Gate(t.run_text)
    settings = GatewaySettings(queue=QueueLimits(rows=1), drain_grace_s=0.0, drain_idle_s=0.0)
    async with start_gateway({"text": gate}, settings) as gateway:
        stub, red = Stub(gateway.grpc_address), pbm.MultiModalRequest(text="red")
        first = asyncio.ensure_future(stub(ANSWER, red, pbm.MultiModalAnswer, timeout=60))
        await gate.reached()
        second = asyncio.ensure_future(stub(ANSWER, red, pbm.MultiModalAnswer, timeout=60))
        await until(lambda: gateway.handlers.executor.queued == 1)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub(ANSWER, red, pbm.MultiModalAnswer, timeout=60)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        trailers = dict(caught.value.trailing_metadata() or ())
        assert int(trailers["grpc-retry-pushback-ms"]) > 0
        gate.open.set()
        assert (await first).items[0].id == (await second).items[0].id == "red"
        await stub.channel.close()


async def test_a_deadline_or_a_cancellation_takes_the_work_back(
    start_gateway: StartGateway,
) -> None:
    gate = t.Gate(t.run_text)
    async with start_gateway({"text": gate}) as gateway:
        stub, red = Stub(gateway.grpc_address), pbm.MultiModalRequest(text="red")
        first = asyncio.ensure_future(stub(ANSWER, red, pbm.MultiModalAnswer, timeout=60))
        await gate.reached()
        late = stub(ANSWER, red, pbm.MultiModalAnswer, timeout=0.1)
        # Shed just before the deadline, unless the client's own timer comes first.
        assert await code_of(late) in (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            grpc.StatusCode.DEADLINE_EXCEEDED,
        )
        cancelled = stub(ANSWER, red, pbm.MultiModalAnswer, timeout=60)
        await until(lambda: gateway.handlers.executor.queued == 1)
        cancelled.cancel()
        await until(lambda: gateway.handlers.executor.queued == 0)
        gate.open.set()
        await first
        assert gate.calls == 1
        await stub.channel.close()


async def test_a_message_over_the_bound_is_refused_before_it_is_read(
    start_gateway: StartGateway,
) -> None:
    settings = GatewaySettings(max_body_bytes=1000, drain_grace_s=0.0, drain_idle_s=0.0)
    async with start_gateway(settings=settings) as gateway:
        stub = Stub(gateway.grpc_address)
        call = stub(ANSWER, pbm.MultiModalRequest(text="x" * 2000), pbm.MultiModalAnswer)
        assert await code_of(call) is grpc.StatusCode.RESOURCE_EXHAUSTED
        await stub.channel.close()


async def test_a_crash_tells_the_caller_nothing_of_its_inside(start_gateway: StartGateway) -> None:
    def crash(_: Any) -> Any:
        raise RuntimeError("secret")

    async with start_gateway({"text": crash}) as gateway:
        stub = Stub(gateway.grpc_address)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub(ANSWER, pbm.MultiModalRequest(text="red"), pbm.MultiModalAnswer)
        assert caught.value.code() is grpc.StatusCode.INTERNAL
        assert "secret" not in str(caught.value.details())
        await stub.channel.close()
