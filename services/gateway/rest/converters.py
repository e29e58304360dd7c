"""The Open Inference Protocol's JSON and its binary tensor extension, to values and back."""

from __future__ import annotations

from typing import Any

import msgspec

from services.gateway.inference import InferRequest, InferResponse, ModelMetadata, Parameter
from services.gateway.origins import origins_of_parameters
from services.gateway.tensors import (
    WireTensor,
    list_of,
    raw_of,
    tensor_from_list,
    tensor_from_raw,
)
from validators.contracts.errors import BadInput, TooLarge

HEADER_LENGTH = "inference-header-content-length"
MAX_TENSORS = 64

Parameters = dict[str, bool | int | float | str | list[Any] | dict[str, Any] | None]


class JsonTensor(msgspec.Struct):
    name: str
    shape: list[int]
    datatype: str
    parameters: Parameters = {}
    data: Any = None


class JsonOutput(msgspec.Struct):
    name: str
    parameters: Parameters = {}


class JsonRequest(msgspec.Struct):
    inputs: list[JsonTensor]
    id: str = ""
    parameters: Parameters = {}
    outputs: list[JsonOutput] = []


_DECODER = msgspec.json.Decoder(JsonRequest)


class DecodedRequest(msgspec.Struct, frozen=True):
    """A request, its own id where it has one, and which outputs are wanted as binary."""

    request: InferRequest
    id: str
    binary: frozenset[str]
    all_binary: bool


def decode_request(
    body: bytes, header_length: str | None, model: str, version: str | None
) -> DecodedRequest:
    """The request in a body: JSON, or JSON followed by the tensors' bytes.

    Raises:
        BadInput: not JSON of the protocol, a header length or binary size that does not fit, an
            origin that cannot be read.
    """
    split = _split_at(body, header_length)
    try:
        document = _DECODER.decode(memoryview(body)[:split])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadInput(
            f"the body is not an inference request: {error}",
            where="body",
            remedy="Send JSON as the Open Inference Protocol v2 has it.",
        ) from error
    if not document.inputs or max(len(document.inputs), len(document.outputs)) > MAX_TENSORS:
        raise TooLarge(f"a request holds 1 to {MAX_TENSORS} tensors", where="inputs")
    origins_of_parameters(document.parameters)  # before what is no scalar is left out
    inputs = _decode_inputs(document.inputs, memoryview(body)[split:])
    binary = {out.name for out in document.outputs if out.parameters.get("binary_data") is True}
    plain = {out.name for out in document.outputs if out.parameters.get("binary_data") is False}
    everything = document.parameters.get("binary_data_output") is True
    names = tuple(out.name for out in document.outputs)
    wanted = binary | ((set(names) - plain) if everything else set())
    request = InferRequest(model, version, inputs, names, _scalars(document.parameters))
    return DecodedRequest(request, document.id, frozenset(wanted), everything and not names)


def encode_response(response: InferResponse, decoded: DecodedRequest) -> tuple[bytes, int | None]:
    """The body, and the JSON part's length where tensors follow it as bytes."""
    outputs, chunks = [], []
    for tensor in response.outputs:
        entry: dict[str, Any] = {
            "name": tensor.name,
            "datatype": tensor.datatype,
            "shape": list(tensor.shape),
        }
        if decoded.all_binary or tensor.name in decoded.binary:
            chunks.append(raw_of(tensor))
            entry["parameters"] = {"binary_data_size": len(chunks[-1])}
        else:
            entry["data"] = list_of(tensor)
        outputs.append(entry)
    document = {
        "model_name": response.model,
        "model_version": response.version,
        "id": response.id,
        "parameters": dict(response.parameters),
        "outputs": outputs,
    }
    header = msgspec.json.encode(document)
    return (b"".join([header, *chunks]), len(header)) if chunks else (header, None)


def encode_metadata(metadata: ModelMetadata) -> dict[str, Any]:
    return {
        "name": metadata.name,
        "versions": list(metadata.versions),
        "platform": metadata.platform,
        "inputs": [msgspec.to_builtins(tensor) for tensor in metadata.inputs],
        "outputs": [msgspec.to_builtins(tensor) for tensor in metadata.outputs],
    }


def _split_at(body: bytes, header_length: str | None) -> int:
    if header_length is None:
        return len(body)
    if not header_length.isascii() or not header_length.isdigit() or len(header_length) > 12:
        raise _bad_header("is not a number")
    length = int(header_length)
    if length > len(body):
        raise _bad_header(f"is {length}, the body has {len(body)} bytes")
    return length


def _decode_inputs(tensors: list[JsonTensor], rest: memoryview) -> tuple[WireTensor, ...]:
    inputs, position = [], 0
    for tensor in tensors:
        size = tensor.parameters.get("binary_data_size")
        if size is None:
            inputs.append(tensor_from_list(tensor.name, tensor.datatype, tensor.shape, tensor.data))
            continue
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise BadInput("binary_data_size is not a number of bytes", where=tensor.name)
        if position + size > len(rest):
            raise BadInput(
                f"the body ends within tensor {tensor.name}",
                where="body",
                remedy="Send all bytes that the binary_data_size values announce.",
            )
        raw = rest[position : position + size]
        inputs.append(tensor_from_raw(tensor.name, tensor.datatype, tensor.shape, raw))
        position += size
    if position != len(rest):
        raise BadInput(
            f"{len(rest) - position} bytes are left after the last tensor",
            where="body",
            remedy="Give every binary tensor its binary_data_size.",
        )
    return tuple(inputs)


def _scalars(parameters: Parameters) -> dict[str, Parameter]:
    return {k: v for k, v in parameters.items() if isinstance(v, bool | int | float | str)}


def _bad_header(why: str) -> BadInput:
    return BadInput(
        f"Inference-Header-Content-Length {why}",
        where="header",
        remedy="Give the length of the JSON part in bytes.",
    )
