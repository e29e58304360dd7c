"""Run in a process of its own: Triton's stock clients against a gateway of the toy service."""

from __future__ import annotations

import sys

import numpy as np
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException


def main(rest_address: str, grpc_address: str) -> None:
    for module, address in ((triton_http, rest_address), (triton_grpc, grpc_address)):
        client = module.InferenceServerClient(address)
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("image")
        assert client.is_model_ready("colours", "r1")
        assert client.get_server_metadata()
        assert client.get_model_metadata("image")

        pixels = np.zeros((2, 3, 8, 8), np.float32)
        pixels[:, 1] = 1
        tensor = module.InferInput("pixels", list(pixels.shape), "FP32")
        tensor.set_data_from_numpy(pixels)  # binary
        wanted = module.InferRequestedOutput("features")
        result = client.infer("image", [tensor], outputs=[wanted], request_id="7")
        assert result.as_numpy("features").tolist() == [[0, 1, 0]] * 2

        text = module.InferInput("text", [1], "BYTES")
        text.set_data_from_numpy(np.array([b"green"], dtype=np.object_))
        sound = np.sin(np.arange(16_000) * 2 * np.pi * 1700 / 16_000) * 16_000
        audio = module.InferInput("audio", [16_000], "INT16")
        audio.set_data_from_numpy(sound.astype(np.int16))
        answer = client.infer("colours", [text, audio])
        assert answer.as_numpy("ids")[0] == b"green"
        assert answer.as_numpy("captions")[0] == b"something green"
        assert answer.as_numpy("scores").dtype == np.float32
        assert answer.as_numpy("transcript")[0] == b"green"
        try:
            client.infer("nothing", [tensor])
        except InferenceServerException as error:
            assert "nothing" in str(error)
        else:
            raise AssertionError("an unknown model was served")
        client.close()
    # JSON tensors, in and out.
    client = triton_http.InferenceServerClient(rest_address)
    tensor = triton_http.InferInput("pixels", [2, 3, 8, 8], "FP32")
    tensor.set_data_from_numpy(pixels, binary_data=False)
    wanted = triton_http.InferRequestedOutput("features", binary_data=False)
    result = client.infer("image", [tensor], outputs=[wanted])
    assert result.as_numpy("features").tolist() == [[0, 1, 0]] * 2
    client.close()
    print("spoke with both")


if __name__ == "__main__":
    main(*sys.argv[1:])
