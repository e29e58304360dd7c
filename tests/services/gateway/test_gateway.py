"""The gateway as a whole: up, drained, its ports given back."""

from __future__ import annotations

import asyncio
import dataclasses
import socket

import grpc
import httpx
import pytest

from infra.clocks import SystemClock
from services.gateway.gateway import Addresses, Gateway
from services.gateway.grpc import modalgate_pb2 as pbm
from services.gateway.settings import GatewaySettings
from tests.services.gateway import toy as t
from tests.services.gateway.conftest import TOKEN, StartGateway, until
from validators.contracts.errors import Unavailable


@pytest.mark.parametrize("port", ["rest_port", "grpc_port", "admin_port"])
async def test_a_port_that_is_taken_is_named(toy: t.Toy, port: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        addresses = dataclasses.replace(Addresses(), **{port: number})
        with pytest.raises(Unavailable, match=str(number)):
            Gateway(t.SERVICE, TOKEN, toy.loaders(), SystemClock(), addresses=addresses)


async def test_while_it_drains_it_is_not_ready_and_still_answers(
    start_gateway: StartGateway,
) -> None:
    gate = t.Gate(t.run_text)
    settings = GatewaySettings(drain_grace_s=0.5)
    async with (
        start_gateway({"text": gate}, settings) as gateway,
        httpx.AsyncClient(base_url=gateway.rest_url, timeout=60) as client,
    ):
        running = asyncio.create_task(client.post("/v1/answer", json={"text": "red"}))
        await gate.reached()
        draining = asyncio.create_task(gateway.drain())
        await until(lambda: gateway.handlers.health.draining)
        assert (await client.get("/v2/health/ready")).status_code == 503
        assert (await client.get("/v2/health/live")).status_code == 200
        latecomer = asyncio.create_task(client.post("/v1/answer", json={"text": "blue"}))
        await until(lambda: gateway.handlers.executor.queued == 1)
        gate.open.set()
        for answered in await asyncio.gather(running, latecomer):
            assert answered.status_code == 200
            assert answered.headers["connection"] == "close"
        await draining
        with pytest.raises(httpx.ConnectError):
            await client.get("/v2/health/live")


async def test_a_call_under_way_is_answered_before_the_process_ends(
    start_gateway: StartGateway,
) -> None:
    gate = t.Gate(t.run_text)
    async with start_gateway({"text": gate}) as gateway:
        channel = grpc.aio.insecure_channel(gateway.grpc_address)
        call = channel.unary_unary(
            "/modalgate.v1.MultiModal/Answer",
            request_serializer=pbm.MultiModalRequest.SerializeToString,
            response_deserializer=pbm.MultiModalAnswer.FromString,
        )
        running = asyncio.ensure_future(call(pbm.MultiModalRequest(text="red"), timeout=60))
        await gate.reached()
        draining = asyncio.create_task(gateway.drain())
        await until(lambda: gateway.handlers.health.draining)
        gate.open.set()
        assert (await running).items[0].id == "red"
        await draining
        await channel.close()
