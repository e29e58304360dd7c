"""Stock clients of other projects talk to the gateway.

Each in a process of its own: they bring their own definition of the protocol's messages.
"""

from __future__ import annotations

import asyncio
import sys

import pytest

from services.gateway.gateway import Gateway


@pytest.mark.slow
@pytest.mark.parametrize("client", ["triton_client", "kserve_client"])
async def test_a_stock_client_is_served(gateway: Gateway, client: str) -> None:
    rest = gateway.rest_url if client == "kserve_client" else gateway.rest_url.split("//")[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"tests.services.gateway.{client}",
        rest,
        gateway.grpc_address,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), 180)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, errors.decode()[-3000:]
    assert output.decode().strip().endswith("spoke with both")
