"""The data plane over real HTTP."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
from typing import Any

import httpx
import numpy as np
import pytest

from services.engines.guard import check_feeds
from services.gateway.gateway import Gateway
from services.gateway.scheduler import QueueLimits
from services.gateway.settings import GatewaySettings
from tests.services.gateway import toy as t
from tests.services.gateway.conftest import StartGateway, until
from validators.contracts.engine import ShapeProfile, ShapeRange
from validators.contracts.origin import VectorOrigin
from validators.contracts.ports import Tensors

HEADER_LENGTH = "Inference-Header-Content-Length"


def best(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    return str(response.json()["items"][0]["id"])


async def test_a_live_gateway_with_traffic_is_ready(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v2/health/live")).json() == {"live": True}
    ready = await client.get("/v2/health/ready")
    assert (ready.status_code, ready.json()) == (200, {"ready": True})
    assert (await client.get("/v2")).json()["name"] == "modalgate"


async def test_the_pipeline_and_each_encoder_are_models(client: httpx.AsyncClient) -> None:
    for model in (t.SERVICE, "image", "text", "speech", "speech_decoder"):
        metadata = (await client.get(f"/v2/models/{model}")).json()
        assert metadata["name"] == model
        assert metadata["versions"] == ["r1"]
        assert (await client.get(f"/v2/models/{model}/ready")).status_code == 200
        assert (await client.get(f"/v2/models/{model}/versions/r1/ready")).status_code == 200
    pixels = (await client.get("/v2/models/image")).json()["inputs"]
    assert pixels == [{"name": "pixels", "datatype": "FP32", "shape": [-1, 3, 8, 8]}]


@pytest.mark.parametrize("path", ["/v2/models/nothing", "/v2/models/image/versions/r9", "/else"])
async def test_what_is_not_there_is_404(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path)
    assert response.status_code == 404
    assert response.json()["error"]


@pytest.mark.parametrize("colour", t.COLOURS)
async def test_every_form_of_a_request_finds_the_colour(
    client: httpx.AsyncClient, colour: str
) -> None:
    image, samples = t.picture(colour), t.tone(colour)
    pcm = t.pcm16(samples)
    raw = {"content-type": "image/png"}
    assert best(await client.post("/v1/answer", content=image, headers=raw)) == colour
    for media_type, body in (("audio/wav", t.wav(samples)), ("audio/l16", pcm)):
        headers = {"content-type": media_type}
        spoken = await client.post("/v1/answer", content=body, headers=headers)
        assert best(spoken) == colour
        assert spoken.json()["transcript"] == colour
    plain = {"content-type": "text/plain; charset=utf-8"}
    assert best(await client.post("/v1/answer", content=colour, headers=plain)) == colour
    fields: dict[str, Any] = {"text": colour}
    form = await client.post(
        "/v1/answer",
        files={"image": ("a.png", image, "image/png"), "audio": ("a.wav", t.wav(samples))},
        data={"text": colour, "session_id": "s-1", "metadata": json.dumps({"page": "1"})},
    )
    assert best(form) == colour
    assert form.json()["session_id"] == "s-1"
    assert {b["status"] for b in form.json()["branches"].values()} == {"used"}
    fields["image_bytes"] = [base64.b64encode(image).decode()] * 2
    fields["audio_pcm"] = base64.b64encode(pcm).decode()
    assert best(await client.post("/v1/answer", json=fields)) == colour


async def test_an_answer_says_what_it_used(client: httpx.AsyncClient) -> None:
    response = await client.post(
        "/v1/answer", json={"text": "red"}, headers={"x-request-id": "q-7", "x-session-id": "s"}
    )
    answer = response.json()
    assert answer["request_id"] == "q-7"
    assert response.headers["x-request-id"] == "q-7"
    assert answer["session_id"] == "s"
    assert answer["revision"] == "r1"
    assert answer["degraded"] is False
    assert answer["branches"]["text"]["status"] == "used"
    assert answer["branches"]["image"] == {"status": "missing", "ms": None}
    assert answer["encoders"].keys() == answer["engines"].keys() == {"text"}
    assert len(answer["items"]) == 2
    assert answer["items"][0]["caption"] == "something red"


async def test_stereo_at_48_khz_is_resampled(client: httpx.AsyncClient) -> None:
    body = t.wav(t.tone("green", rate_hz=48_000), 48_000, channels=2)
    spoken = await client.post("/v1/answer", content=body, headers={"content-type": "audio/wav"})
    assert best(spoken) == "green"


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


BAD_ANSWERS = {
    "corrupt image": ({"image_bytes": [_b64(t.picture("red", "JPEG", 256)[:-400])]}, 400),
    "not an image": ({"image_bytes": [_b64(b"GIF89a rubbish")]}, 422),
    "empty image": ({"image_bytes": [""]}, 400),
    "oversize image": ({"image_bytes": [_b64(bytes(4 * 1024 * 1024 + 1))]}, 413),
    "too many images": ({"image_bytes": [_b64(t.picture("red"))] * 9}, 413),
    "empty WAV": ({"audio": _b64(t.wav(t.tone("red", 0.0)))}, 400),
    "not a recording": ({"audio": _b64(b"RIFF rubbish")}, 422),
    "half a sample": ({"audio_pcm": _b64(b"abc")}, 400),
    "over a minute": ({"audio_pcm": _b64(bytes(2 * 16_000 * 61))}, 413),
    "two recordings": ({"audio_pcm": _b64(b"ab"), "audio": _b64(b"ab")}, 400),
    "nothing at all": ({}, 422),
    "blank text": ({"text": "  "}, 400),
    "long text": ({"text": "a" * 20_001}, 413),
    "text of another type": ({"text": 5}, 400),
    "unknown field": ({"txt": "red"}, 400),
    "not base64": ({"image_bytes": ["???"]}, 400),
    "too much metadata": ({"text": "red", "metadata": {"k": "v" * 20_000}}, 413),
    "a session that is no id": ({"text": "red", "session_id": "a b\n"}, 400),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
async def test_bad_input_gets_a_clear_4xx(client: httpx.AsyncClient, name: str) -> None:
    body, status = BAD_ANSWERS[name]
    response = await client.post("/v1/answer", json=body)
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(error) == {"what", "where", "remedy"}
    assert error["what"]


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{", {"content-type": "application/json"}, 400),
        (b"\xff\xfe", {"content-type": "text/plain"}, 400),
        (b"x", {"content-type": "application/pdf"}, 422),
        (b"x", {}, 422),
        (b"rubbish", {"content-type": "multipart/form-data"}, 400),
        (b"--b\r\nrubbish", {"content-type": "multipart/form-data; boundary=b"}, 400),
        (b"\x1f\x8b", {"content-type": "application/json", "content-encoding": "gzip"}, 422),
        (b"red", {"content-type": "text/plain", "x-request-timeout-ms": "soon"}, 400),
        (b"red", {"content-type": "text/plain", "x-request-timeout-ms": "-1"}, 400),
        (b"red", {"content-type": "text/plain", "x-request-id": "a b"}, 400),
    ],
)
async def test_a_body_or_header_that_cannot_be_read_is_refused(
    client: httpx.AsyncClient, content: bytes, headers: dict[str, str], status: int
) -> None:
    response = await client.post("/v1/answer", content=content, headers=headers)
    assert response.status_code == status, response.text
    assert response.json()["error"]["what"]


async def test_a_body_over_the_bound_is_413_before_it_is_read(start_gateway: StartGateway) -> None:
    settings = GatewaySettings(max_body_bytes=1000, drain_grace_s=0.0, drain_idle_s=0.0)
    async with start_gateway(settings=settings) as gateway, httpx.AsyncClient() as client:

        async def chunks() -> Any:
            for _ in range(20):
                yield b"x" * 100

        for content in (b"x" * 2000, chunks()):
            response = await client.post(
                f"{gateway.rest_url}/v1/answer",
                content=content,
                headers={"content-type": "text/plain"},
            )
            assert response.status_code == 413


async def test_modalities_without_a_branch_are_an_unsupported_combination(
    start_gateway: StartGateway, toy: t.Toy
) -> None:
    silent = t.make_toy(toy.path.parent, branches=t.DEFAULT_BRANCHES[:2])
    async with start_gateway(served=silent) as gateway, httpx.AsyncClient() as client:
        response = await client.post(
            f"{gateway.rest_url}/v1/answer",
            json={"text": "red", "audio_pcm": _b64(t.pcm16(t.tone("red")))},
        )
        assert response.status_code == 422
        assert response.json()["error"]["what"] == "unsupported combination: audio + text"


def origins(gateway: Gateway) -> dict[str, VectorOrigin]:
    served = gateway.revisions.find("r1")
    assert served is not None
    return {name: encoder.origin for name, encoder in served.revision.encoders.items()}


# -- the Open Inference Protocol ----------------------------------------------------------


async def test_json_tensors_go_through_an_encoder(
    client: httpx.AsyncClient, gateway: Gateway
) -> None:
    origin = origins(gateway)["image"]
    pixels = np.zeros((2, 3, 8, 8), np.float32)
    pixels[0, 0] = pixels[1, 2] = 1
    tensor = {
        "name": "pixels",
        "shape": [2, 3, 8, 8],
        "datatype": "FP32",
        "data": pixels.tolist(),
    }
    response = await client.post("/v2/models/image/infer", json={"id": "7", "inputs": [tensor]})
    assert response.json() == {
        "model_name": "image",
        "model_version": "r1",
        "id": "7",
        "parameters": {
            "modalgate.encoder": origin.encoder,
            "modalgate.engine": origin.engine,
            "degraded": False,
        },
        "outputs": [
            {"name": "features", "datatype": "FP32", "shape": [2, 3], "data": [1, 0, 0, 0, 0, 1]}
        ],
    }


async def test_binary_tensors_go_in_and_out(client: httpx.AsyncClient) -> None:
    pixels = np.ones((1, 3, 8, 8), np.float32)
    header = json.dumps(
        {
            "inputs": [
                {
                    "name": "pixels",
                    "shape": [1, 3, 8, 8],
                    "datatype": "FP32",
                    "parameters": {"binary_data_size": pixels.nbytes},
                }
            ],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    response = await client.post(
        "/v2/models/image/versions/r1/infer",
        content=header + pixels.tobytes(),
        headers={HEADER_LENGTH: str(len(header))},
    )
    assert response.status_code == 200, response.text
    split = int(response.headers[HEADER_LENGTH])
    (output,) = json.loads(response.content[:split])["outputs"]
    assert output["parameters"] == {"binary_data_size": 12}
    assert np.frombuffer(response.content[split:], "<f4").tolist() == [1, 1, 1]


async def test_the_whole_pipeline_is_a_model(client: httpx.AsyncClient, gateway: Gateway) -> None:
    samples = t.tone("blue")
    body = {
        "inputs": [
            {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["blue"]},
            {"name": "audio", "shape": [16000], "datatype": "FP32", "data": samples.tolist()},
        ],
        "parameters": {"session_id": "s-2"},
    }
    response = await client.post(f"/v2/models/{t.SERVICE}/infer", json=body)
    outputs = {o["name"]: o["data"] for o in response.json()["outputs"]}
    assert outputs["ids"][0] == "blue"
    assert outputs["captions"][0] == "something blue"
    assert outputs["transcript"] == ["blue"]
    made = {name: origin for name, origin in origins(gateway).items() if name != "image"}
    assert response.json()["parameters"] == {
        "degraded": False,
        "modalgate.encoder": ",".join(f"{n}={made[n].encoder}" for n in sorted(made)),
        "modalgate.engine": ",".join(f"{n}={made[n].engine}" for n in sorted(made)),
    }


def _infer(**changes: Any) -> dict[str, Any]:
    tensor = {"name": "pixels", "shape": [1, 3, 8, 8], "datatype": "FP32", "data": [0.5] * 192}
    return {"inputs": [{**tensor, **changes}]}


BAD_INFERENCES = {
    "wrong dtype": (_infer(datatype="FP64"), 400),
    "unknown dtype": (_infer(datatype="FP12"), 422),
    "wrong shape": (_infer(shape=[1, 3, 4, 16]), 400),
    "wrong rank": (_infer(shape=[192]), 400),
    "empty batch": (_infer(shape=[0, 3, 8, 8], data=[]), 400),
    "negative dimension": (_infer(shape=[-1, 3, 8, 8]), 400),
    "a huge shape": (_infer(shape=[1 << 62, 1 << 62]), 413),
    "too few elements": (_infer(data=[0.5]), 400),
    "ragged": (_infer(data=[[1.0], [1.0, 2.0]]), 400),
    "text as numbers": (_infer(data=["a"] * 192), 400),
    "no data": (_infer(data=None), 400),
    "unknown tensor": (_infer(name="pixel"), 404),
    "given twice": ({"inputs": _infer()["inputs"] * 2}, 400),
    "no tensors": ({"inputs": []}, 413),
    "no inputs": ({}, 400),
    "unknown output": ({**_infer(), "outputs": [{"name": "logits"}]}, 404),
}


@pytest.mark.parametrize("name", BAD_INFERENCES)
async def test_tensors_that_do_not_fit_are_refused(client: httpx.AsyncClient, name: str) -> None:
    body, status = BAD_INFERENCES[name]
    response = await client.post("/v2/models/image/infer", json=body)
    assert response.status_code == status, response.text
    assert isinstance(response.json()["error"], str)


@pytest.mark.parametrize(
    ("header_length", "size", "body_size"),
    [
        ("-1", 768, 768),
        ("many", 768, 768),
        ("999999", 768, 768),
        (None, 768, 767),
        (None, 768, 769),
        (None, 760, 760),
        (None, "768", 768),
        (None, -1, 0),
        (None, 1 << 70, 768),
    ],
)
async def test_a_malformed_binary_body_is_refused(
    client: httpx.AsyncClient, header_length: str | None, size: Any, body_size: int
) -> None:
    document = _infer(parameters={"binary_data_size": size})
    del document["inputs"][0]["data"]
    header = json.dumps(document).encode()
    response = await client.post(
        "/v2/models/image/infer",
        content=header + bytes(body_size),
        headers={HEADER_LENGTH: header_length or str(len(header))},
    )
    assert response.status_code == 400, response.text


async def test_a_token_id_that_the_encoder_has_no_row_for_is_400(
    start_gateway: StartGateway,
) -> None:
    text = next(item for item in t.CONTRACTS if item.name == "text")
    ids, mask = text.inputs
    inputs = (dataclasses.replace(ids, value_range=(0.0, 3.0)), mask)
    shapes = tuple(ShapeRange(item.name, (1, 1), (1, 4), (8, 16)) for item in inputs)

    def guarded(feeds: Tensors) -> t.Outputs:
        check_feeds(feeds, inputs, (ShapeProfile(shapes),))
        return t.run_text(feeds)

    def tensor(name: str, data: list[int]) -> dict[str, Any]:
        return {"name": name, "shape": [1, len(data)], "datatype": "INT64", "data": data}

    async with (
        start_gateway({"text": guarded}) as gateway,
        httpx.AsyncClient(base_url=gateway.rest_url, timeout=60) as session,
    ):
        for found, status in ((3, 200), (4, 400), (-1, 400), (2**62, 400)):
            tensors = [tensor("input_ids", [1, found]), tensor("attention_mask", [1, 1])]
            response = await session.post("/v2/models/text/infer", json={"inputs": tensors})
            assert response.status_code == status, response.text
            if status == 400:
                assert f"input_ids holds {found}, outside 0 to 3" in response.json()["error"]


async def test_an_unknown_model_is_404(client: httpx.AsyncClient) -> None:
    response = await client.post("/v2/models/nothing/infer", json=_infer())
    assert response.status_code == 404
    assert "nothing" in response.json()["error"]


async def test_a_crash_tells_the_caller_nothing_of_its_inside(
    start_gateway: StartGateway, caplog: pytest.LogCaptureFixture
) -> None:
    def crash(_: Any) -> Any:
        raise RuntimeError("sec" + "ret")  # a traceback shows this line, never the message

    async with start_gateway({"text": crash}) as gateway:
        response = await _post(gateway)
        assert response.status_code == 500
        assert response.json()["error"]["what"]
        assert "secret" not in response.text + caplog.text


# -- under load ---------------------------------------------------------------------------


async def _post(gateway: Gateway, timeout_ms: int = 60_000) -> httpx.Response:
    async with httpx.AsyncClient(timeout=60) as client:
        return await client.post(
            f"{gateway.rest_url}/v1/answer",
            json={"text": "red"},
            headers={"x-request-timeout-ms": str(timeout_ms)},
        )


async def test_a_full_queue_sheds_with_429_and_retry_after(start_gateway: StartGateway) -> None:
    gate = t.Gate(t.run_text)
    settings = GatewaySettings(queue=QueueLimits(rows=2), drain_grace_s=0.0, drain_idle_s=0.0)
    async with start_gateway({"text": gate}, settings) as gateway:
        first = asyncio.create_task(_post(gateway))
        await gate.reached()
        waiting = [asyncio.create_task(_post(gateway)) for _ in range(2)]
        await until(lambda: gateway.handlers.executor.queued == 2)
        shed = await _post(gateway)
        assert shed.status_code == 429
        assert int(shed.headers["retry-after"]) >= 1
        assert shed.json()["error"]["what"] == "the queue is full"
        gate.open.set()
        answered = await asyncio.gather(first, *waiting)
        assert [response.status_code for response in answered] == [200] * 3
        async with httpx.AsyncClient() as client:
            metrics = (await client.get(f"{gateway.rest_url}/metrics")).text
        assert 'modalgate_refused_total{reason="queue-rows"} 1.0' in metrics


async def test_work_that_expired_in_the_queue_is_shed_and_never_runs(
    start_gateway: StartGateway,
) -> None:
    gate = t.Gate(t.run_text)
    async with (
        start_gateway({"text": gate}) as gateway,
        httpx.AsyncClient(base_url=gateway.rest_url, timeout=60) as client,
    ):
        first = asyncio.create_task(_post(gateway))
        await gate.reached()
        late = await _post(gateway, timeout_ms=50)
        tensor = await client.post(
            "/v2/models/image/infer", json=_infer(), headers={"x-request-timeout-ms": "50"}
        )
        for response in (late, tensor):
            assert response.status_code == 429
            assert int(response.headers["retry-after"]) >= 1
        gate.open.set()
        assert (await first).status_code == 200
        assert gate.calls == 1
        metrics = (await client.get("/metrics")).text
    assert 'modalgate_refused_total{reason="expired"} 2.0' in metrics


async def test_work_that_expired_under_way_is_answered_504(start_gateway: StartGateway) -> None:
    gate = t.Gate(t.run_text)
    async with start_gateway({"text": gate}) as gateway:
        late = await _post(gateway, timeout_ms=50)
        gate.open.set()
        assert late.status_code == 504


async def test_who_hangs_up_is_not_served(start_gateway: StartGateway) -> None:
    gate = t.Gate(t.run_text)
    async with start_gateway({"text": gate}) as gateway:
        first = asyncio.create_task(_post(gateway))
        await gate.reached()
        second = asyncio.create_task(_post(gateway))
        await until(lambda: gateway.handlers.executor.queued == 1)
        second.cancel()
        await until(lambda: gateway.handlers.executor.queued == 0)
        gate.open.set()
        assert (await first).status_code == 200
        assert gate.calls == 1


async def test_requests_are_counted_by_what_they_held_and_how_they_ended(
    client: httpx.AsyncClient,
) -> None:
    await client.post("/v1/answer", json={"text": "red"})
    await client.post("/v1/answer", json={"text": " "})
    response = await client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    counted = 'modalgate_requests_total{modalities="text",outcome="%s",revision="r1"} 1.0'
    assert counted % "ok" in response.text
    assert counted % "bad_input" in response.text
    assert 'multimodal_endtoend_latency_seconds_count{revision="r1"} 1.0' in response.text
    assert 'modalgate_engine_latency_seconds_count{encoder="text"' in response.text
