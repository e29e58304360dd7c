"""Run in a process of its own: the KServe SDK's clients against a gateway of the toy service."""

from __future__ import annotations

import asyncio
import sys

arguments, sys.argv = sys.argv[1:], sys.argv[:1]  # importing kserve parses the command line

import numpy as np  # noqa: E402
from kserve import (  # noqa: E402
    InferenceGRPCClient,
    InferenceRESTClient,
    InferInput,
    InferRequest,
    RESTConfig,
)


def make_request(*, binary: bool) -> InferRequest:
    pixels = np.zeros((2, 3, 8, 8), np.float32)
    pixels[:, 2] = 1
    tensor = InferInput("pixels", list(pixels.shape), "FP32")
    tensor.set_data_from_numpy(pixels, binary_data=binary)
    return InferRequest("image", [tensor], request_id="7")


async def main(rest_url: str, grpc_address: str) -> None:
    rest = InferenceRESTClient(RESTConfig(protocol="v2"))
    assert await rest.is_server_live(rest_url)
    assert await rest.is_server_ready(rest_url)
    assert await rest.is_model_ready(rest_url, "image")
    assert not await rest.is_model_ready(rest_url, "nothing")
    async with InferenceGRPCClient(grpc_address) as client:
        assert await client.is_server_live()
        assert await client.is_server_ready()
        assert await client.is_model_ready("image")
        for binary in (True, False):
            answer = await client.infer(make_request(binary=binary))
            assert answer.outputs[0].as_numpy().tolist() == [[0, 0, 1]] * 2
    for binary in (True, False):
        answer = await rest.infer(rest_url, make_request(binary=binary), model_name="image")
        assert answer.id == "7"
        assert answer.outputs[0].as_numpy().tolist() == [[0, 0, 1]] * 2
    await rest.close()
    print("spoke with both")


if __name__ == "__main__":
    asyncio.run(main(*arguments))
