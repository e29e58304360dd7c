"""A running gateway of the toy service, on ports that the system chose."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from infra.clocks import SystemClock
from services.gateway.gateway import Gateway
from services.gateway.settings import GatewaySettings
from tests.services.gateway.toy import SERVICE, Function, Toy, make_toy

TOKEN = "a-token-for-this-test-only"
QUICK = GatewaySettings(drain_grace_s=0.0, drain_idle_s=0.0, drain_timeout_s=10.0)

StartGateway = Callable[..., contextlib.AbstractAsyncContextManager[Gateway]]


async def until(condition: Callable[[], bool]) -> None:
    """Returns when the condition holds; a minute is enough for any of them."""
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to that")


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return make_toy(tmp_path)


@pytest.fixture
def start_gateway(toy: Toy) -> StartGateway:
    @contextlib.asynccontextmanager
    async def start(
        functions: dict[str, Function] | None = None,
        settings: GatewaySettings = QUICK,
        served: Toy = toy,
        **parts: Any,
    ) -> AsyncIterator[Gateway]:
        loaders = served.loaders(functions, **parts)
        gateway = Gateway(SERVICE, TOKEN, loaders, SystemClock(), settings=settings)
        await gateway.start()
        await gateway.serve_first("r1", served.path)
        try:
            yield gateway
        finally:
            await gateway.drain()

    return start


@pytest.fixture
async def gateway(start_gateway: StartGateway) -> AsyncIterator[Gateway]:
    async with start_gateway() as running:
        yield running


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=gateway.rest_url, timeout=60) as session:
        yield session


@pytest.fixture
async def admin(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(
        base_url=gateway.admin_url, headers=headers, timeout=60
    ) as session:
        yield session
