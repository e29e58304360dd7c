"""What the gateway does, without any transport."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import numpy as np
import pytest

from services.gateway.gateway import Gateway
from services.gateway.inference import InferRequest
from services.gateway.requests import Call, Medium, MultimodalRequest
from services.gateway.tensors import WireTensor
from tests.services.gateway import toy as t
from tests.services.gateway.conftest import StartGateway
from validators.contracts.errors import (
    BadInput,
    DeadlineExceeded,
    ModalgateError,
    Unavailable,
    Unsupported,
)
from validators.contracts.pipeline import Answer, Branch, Fusion
from validators.contracts.slo import Slo, SloClass

IMAGE = ("image", (Medium("image/png", t.picture("red")),))
TEXT = ("text", (Medium("text/plain", "blue"),))
BOTH = MultimodalRequest((IMAGE, TEXT))


def call(gateway: Gateway, timeout_ms: float = 60_000) -> Call:
    return Call("q", gateway.handlers.clock.monotonic_ns(), timeout_ms)


def broken(_: Any) -> Any:
    raise Unavailable("the device is gone")


def crash(_: Any) -> Any:
    raise RuntimeError("it quotes the caller")


async def test_pictures_and_text_are_fused(gateway: Gateway) -> None:
    answer = await gateway.handlers.answer(call(gateway), BOTH)
    assert {item.id for item in answer.items} == {"red", "blue"}
    assert answer.items[0].score == pytest.approx(0.5**0.5, abs=1e-3)
    assert set(answer.encoders) == {"image", "text"}


async def test_weights_decide_between_branches(start_gateway: StartGateway, toy: t.Toy) -> None:
    heavy = dataclasses.replace(t.DEFAULT_BRANCHES[0], weight=3.0)
    served = t.make_toy(toy.path.parent, branches=(heavy, *t.DEFAULT_BRANCHES[1:]))
    async with start_gateway(served=served) as gateway:
        answer = await gateway.handlers.answer(call(gateway), BOTH)
        assert [item.id for item in answer.items] == ["red", "blue"]


async def test_an_embedding_is_the_fused_vector(start_gateway: StartGateway, toy: t.Toy) -> None:
    served = t.make_toy(toy.path.parent, answer=Answer("embedding"))
    async with start_gateway(served=served) as gateway:
        answer = await gateway.handlers.answer(call(gateway), BOTH)
        assert answer.items == ()
        assert answer.embedding == pytest.approx([0.5**0.5, 0, 0.5**0.5], abs=1e-3)
        tensors = await gateway.handlers.infer(call(gateway), _pipeline_request())
        assert [tensor.name for tensor in tensors.outputs] == ["embedding"]


@pytest.mark.parametrize("engine", [broken, crash])
async def test_a_branch_that_fails_is_masked_and_said(
    start_gateway: StartGateway, engine: t.Function
) -> None:
    async with start_gateway({"image": engine}) as gateway:
        answer = await gateway.handlers.answer(call(gateway), BOTH)
        assert answer.degraded
        assert answer.branches["image"].status == "failed"
        assert answer.items[0].id == "blue"
        (stats,) = gateway.admin_handlers.stats()
        assert (stats.requests, stats.errors, stats.degraded) == (1, 0, 1)


async def test_an_engine_whose_answer_is_not_finite_is_at_fault_itself(
    start_gateway: StartGateway,
) -> None:
    def nan(feeds: Any) -> Any:
        return {"features": np.full((1, 3), np.nan, np.float32)}

    async with start_gateway({"image": nan}) as gateway:
        with pytest.raises(Unavailable):
            await gateway.handlers.answer(call(gateway), MultimodalRequest((IMAGE,)))


async def test_a_late_branch_does_not_keep_the_others_waiting(
    start_gateway: StartGateway, toy: t.Toy
) -> None:
    slow = dataclasses.replace(t.DEFAULT_BRANCHES[0], timeout_ms=300.0)
    # Text first: with one worker, a picture that is stuck would hold it up.
    served = t.make_toy(toy.path.parent, branches=(t.DEFAULT_BRANCHES[1], slow))
    gate = t.Gate(t.run_image)
    async with start_gateway({"image": gate}, served=served) as gateway:
        answer = await gateway.handlers.answer(call(gateway), BOTH)
        gate.open.set()
        assert answer.degraded
        assert answer.branches["image"].status == "late"
        assert answer.branches["text"].status == "used"


async def test_under_any_the_first_branch_answers(start_gateway: StartGateway, toy: t.Toy) -> None:
    served = t.make_toy(toy.path.parent, fusion=Fusion("any"))
    gate = t.Gate(t.run_text)
    async with start_gateway({"text": gate}, served=served) as gateway:
        answer = await gateway.handlers.answer(call(gateway), BOTH)
        gate.open.set()
        assert not answer.degraded
        assert answer.branches["text"].status == "late"
        assert answer.items[0].id == "red"


@pytest.mark.parametrize("policy", ["all", "any", "quorum", "weighted", "ordered"])
async def test_no_policy_answers_after_the_deadline(
    start_gateway: StartGateway, toy: t.Toy, policy: str
) -> None:
    served = t.make_toy(toy.path.parent, fusion=Fusion(policy, quorum=2))
    gates = {"image": t.Gate(t.run_image), "text": t.Gate(t.run_text)}
    async with start_gateway(gates, served=served) as gateway:
        with pytest.raises(DeadlineExceeded):
            await gateway.handlers.answer(call(gateway, timeout_ms=100), BOTH)
        for gate in gates.values():
            gate.open.set()
        (stats,) = gateway.admin_handlers.stats()
        assert (stats.requests, stats.errors) == (1, 1)


@pytest.mark.parametrize("timeout_ms", [60.0, 1e-6])  # run out while it works, or before that
async def test_a_branch_that_ran_out_of_its_own_time_is_named(
    start_gateway: StartGateway, toy: t.Toy, timeout_ms: float
) -> None:
    slow = dataclasses.replace(t.DEFAULT_BRANCHES[0], timeout_ms=timeout_ms)
    served = t.make_toy(toy.path.parent, branches=(t.DEFAULT_BRANCHES[1], slow))
    gate = t.Gate(t.run_image)
    async with start_gateway({"image": gate}, served=served) as gateway:
        with pytest.raises(DeadlineExceeded) as caught:
            await gateway.handlers.answer(call(gateway), MultimodalRequest((IMAGE,)))
        gate.open.set()
        both = await gateway.handlers.answer(call(gateway), BOTH) if timeout_ms < 1 else None
    assert f"the branch image ({timeout_ms:g} ms) ran out of its own time" in caught.value.what
    assert "Raise branches.image.timeout_ms in the pipeline" in caught.value.remedy
    assert both is None or (both.branches["image"].status, both.degraded) == ("late", True)


async def test_silence_alone_is_bad_input_and_beside_a_picture_masked(
    start_gateway: StartGateway,
) -> None:
    audio = ("audio", (Medium("audio/float32", t.tone("red")),))
    silent = {"make_transcriber": lambda *_: lambda *_: " "}
    async with start_gateway(**silent) as gateway:
        with pytest.raises(BadInput, match="nothing was recognised"):
            await gateway.handlers.answer(call(gateway), MultimodalRequest((audio,)))
        answer = await gateway.handlers.answer(call(gateway), MultimodalRequest((IMAGE, audio)))
        assert answer.branches["audio"].status == "failed"
        assert answer.items[0].id == "red"


async def test_the_edge_class_takes_two_modalities_at_most(
    start_gateway: StartGateway, toy: t.Toy
) -> None:
    served = t.make_toy(toy.path.parent, slo=Slo(SloClass.EDGE, 60_000, 50, 512, 0.25, 0.01))
    audio = ("audio", (Medium("audio/float32", t.tone("red")),))
    async with start_gateway(served=served) as gateway:
        assert (await gateway.handlers.answer(call(gateway), BOTH)).items
        with pytest.raises(Unsupported):
            await gateway.handlers.answer(call(gateway), MultimodalRequest((IMAGE, TEXT, audio)))


async def test_without_a_timeout_the_slo_sets_it(start_gateway: StartGateway, toy: t.Toy) -> None:
    served = t.make_toy(toy.path.parent, slo=Slo(SloClass.INTERACTIVE, 80, 50, 4096, 0.25, 0.01))
    gate = t.Gate(t.run_text)
    async with start_gateway({"text": gate}, served=served) as gateway:
        unhurried = dataclasses.replace(call(gateway), timeout_ms=None)
        with pytest.raises(DeadlineExceeded):
            await gateway.handlers.answer(unhurried, MultimodalRequest((TEXT,)))
        gate.open.set()


def _pipeline_request(**changes: Any) -> InferRequest:
    text = WireTensor("text", "BYTES", np.array([b"blue"], dtype=object))
    return InferRequest(t.SERVICE, None, (text,), **changes)


@pytest.mark.parametrize(
    ("tensor", "kind"),
    [
        (WireTensor("text", "BYTES", np.array([b"\xff"], dtype=object)), BadInput),
        (WireTensor("audio", "INT16", np.zeros(0, np.int16)), BadInput),
        (WireTensor("audio", "FP64", np.zeros(9)), Unsupported),
        (WireTensor("lidar", "BYTES", np.array([b"x"], dtype=object)), Unsupported),
    ],
)
async def test_the_pipeline_refuses_tensors_that_are_no_media(
    gateway: Gateway, tensor: WireTensor, kind: type[ModalgateError]
) -> None:
    with pytest.raises(kind):
        await gateway.handlers.infer(call(gateway), InferRequest(t.SERVICE, None, (tensor,)))


async def test_an_output_that_no_pipeline_has_is_refused(gateway: Gateway) -> None:
    with pytest.raises(Unsupported):
        await gateway.handlers.infer(call(gateway), _pipeline_request(outputs=("poem",)))
    scores = await gateway.handlers.infer(call(gateway), _pipeline_request(outputs=("scores",)))
    assert [tensor.name for tensor in scores.outputs] == ["scores"]


async def test_many_at_once_are_all_answered(gateway: Gateway) -> None:
    requests = [MultimodalRequest((IMAGE,)), MultimodalRequest((TEXT,)), BOTH] * 8
    answers = await asyncio.gather(
        *(gateway.handlers.answer(call(gateway), request) for request in requests)
    )
    assert all(answer.items for answer in answers)
    assert gateway.handlers.executor.queued == 0


async def test_a_branch_of_a_pipeline_needs_no_name_of_ours(
    start_gateway: StartGateway, toy: t.Toy
) -> None:
    """Modalities are data: a thermal camera is a picture with another name."""
    thermal = Branch("thermal", "image", t.DEFAULT_BRANCHES[1].adapter)
    thermal = dataclasses.replace(
        thermal,
        adapter=dataclasses.replace(thermal.adapter, output="features"),  # type: ignore[type-var]
    )
    served = t.make_toy(toy.path.parent, branches=(thermal, t.DEFAULT_BRANCHES[1]))
    async with start_gateway(served=served) as gateway:
        media = MultimodalRequest((("thermal", (Medium("thermal/*", t.picture("green")),)),))
        answer = await gateway.handlers.answer(call(gateway), media)
        assert answer.items[0].id == "green"
