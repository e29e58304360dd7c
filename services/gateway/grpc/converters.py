"""The protocol's messages, to values and back."""

from __future__ import annotations

from collections.abc import Mapping

from services.gateway.grpc import inference_pb2 as pb
from services.gateway.grpc import modalgate_pb2 as pbm
from services.gateway.inference import InferRequest, InferResponse, ModelMetadata, Parameter
from services.gateway.origins import PARAMETER, unreadable_origin
from services.gateway.requests import PCM16, Answer, Medium, MultimodalRequest
from services.gateway.tensors import WireTensor, raw_of, tensor_from_list, tensor_from_raw
from validators.contracts.errors import BadInput, TooLarge, Unsupported

MAX_TENSORS = 64

_CONTENTS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


def decode_request(message: pb.ModelInferRequest) -> InferRequest:
    """Raises BadInput, TooLarge or Unsupported for tensors that do not add up."""
    raw = message.raw_input_contents
    if not message.inputs or max(len(message.inputs), len(message.outputs)) > MAX_TENSORS:
        raise TooLarge(f"a request holds 1 to {MAX_TENSORS} tensors", where="inputs")
    if raw and len(raw) != len(message.inputs):
        raise BadInput(
            f"{len(raw)} raw contents were given for {len(message.inputs)} inputs",
            where="raw_input_contents",
            remedy="Give one per input, or none and use contents.",
        )
    inputs = tuple(
        tensor_from_raw(tensor.name, tensor.datatype, tuple(tensor.shape), raw[index])
        if raw
        else _typed(tensor)
        for index, tensor in enumerate(message.inputs)
    )
    return InferRequest(
        model=message.model_name,
        version=message.model_version or None,
        inputs=inputs,
        outputs=tuple(output.name for output in message.outputs),
        parameters=_parameters(message.parameters),
    )


def encode_response(response: InferResponse) -> pb.ModelInferResponse:
    """All tensors as raw bytes, in the order of the outputs."""
    return pb.ModelInferResponse(
        model_name=response.model,
        model_version=response.version,
        id=response.id,
        parameters={name: _parameter(value) for name, value in response.parameters.items()},
        outputs=[
            pb.ModelInferResponse.InferOutputTensor(
                name=tensor.name, datatype=tensor.datatype, shape=tensor.shape
            )
            for tensor in response.outputs
        ],
        raw_output_contents=[raw_of(tensor) for tensor in response.outputs],
    )


def encode_metadata(metadata: ModelMetadata) -> pb.ModelMetadataResponse:
    tensor = pb.ModelMetadataResponse.TensorMetadata
    return pb.ModelMetadataResponse(
        name=metadata.name,
        versions=metadata.versions,
        platform=metadata.platform,
        inputs=[
            tensor(name=item.name, datatype=item.datatype, shape=item.shape)
            for item in metadata.inputs
        ],
        outputs=[
            tensor(name=item.name, datatype=item.datatype, shape=item.shape)
            for item in metadata.outputs
        ],
    )


def decode_multimodal(message: pbm.MultiModalRequest) -> MultimodalRequest:
    """What is absent is left out; what is there and empty is refused later, by its name."""
    media: list[tuple[str, tuple[Medium, ...]]] = []
    if message.image_bytes:
        media.append(("image", tuple(Medium("image/*", data) for data in message.image_bytes)))
    if message.HasField("text"):
        media.append(("text", (Medium("text/plain", message.text),)))
    if message.HasField("audio_pcm"):
        media.append(("audio", (Medium(PCM16, message.audio_pcm),)))
    return MultimodalRequest(tuple(media), tuple(message.metadata.items()))


def encode_answer(answer: Answer) -> pbm.MultiModalAnswer:
    message = pbm.MultiModalAnswer
    return message(
        request_id=answer.request_id,
        session_id=answer.session_id or "",
        revision=answer.revision,
        items=[
            message.Item(id=item.id, caption=item.caption, score=item.score)
            for item in answer.items
        ],
        transcript=answer.transcript,
        branches={
            name: message.Branch(status=report.status, ms=report.ms, reason=report.reason)
            for name, report in answer.branches.items()
        },
        degraded=answer.degraded,
        encoders=answer.encoders,
        engines=answer.engines,
        embedding=None if answer.embedding is None else answer.embedding.tolist(),
    )


def _typed(tensor: pb.ModelInferRequest.InferInputTensor) -> WireTensor:
    name = _CONTENTS.get(tensor.datatype)
    if name is None:
        raise Unsupported(
            f"tensor {tensor.name} is {tensor.datatype[:20]}, which has no typed contents",
            where=tensor.name,
            remedy="Send it in raw_input_contents.",
        )
    data = list(getattr(tensor.contents, name))
    return tensor_from_list(tensor.name, tensor.datatype, tuple(tensor.shape), data)


def _parameters(parameters: Mapping[str, pb.InferParameter]) -> dict[str, Parameter]:
    values: dict[str, Parameter] = {}
    for name, parameter in parameters.items():
        choice = parameter.WhichOneof("parameter_choice")
        if choice is not None:
            values[name] = getattr(parameter, choice)
        elif name == PARAMETER:
            raise unreadable_origin()
    return values


def _parameter(value: Parameter) -> pb.InferParameter:
    match value:
        case bool():
            return pb.InferParameter(bool_param=value)
        case int():
            return pb.InferParameter(int64_param=value)
        case float():
            return pb.InferParameter(double_param=value)
        case _:
            return pb.InferParameter(string_param=value)
