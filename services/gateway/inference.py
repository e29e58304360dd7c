"""The Open Inference Protocol's values: one encoder, or the whole pipeline, as a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from services.engines.elastic.engine import Served
from services.gateway.encoders import LoadedEncoder
from services.gateway.origins import DEGRADED, ENCODER, ENGINE, told_origins
from services.gateway.requests import PCM16, Answer, Medium, MultimodalRequest
from services.gateway.revision import LoadedRevision
from services.gateway.tensors import WireTensor, datatype_of, make_bytes
from validators.contracts.encoder import EncoderContract
from validators.contracts.errors import BadInput, Unsupported
from validators.contracts.tensors import bind_shape

Parameter = bool | int | float | str


@dataclass(frozen=True, slots=True)
class InferRequest:
    """`outputs` names the wanted ones; empty: all."""

    model: str
    version: str | None
    inputs: tuple[WireTensor, ...]
    outputs: tuple[str, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        return sum(tensor.size_bytes for tensor in self.inputs)


@dataclass(frozen=True, slots=True)
class InferResponse:
    model: str
    version: str
    id: str
    outputs: tuple[WireTensor, ...]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerMetadata:
    name: str
    version: str
    extensions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TensorMetadata:
    """A dimension of -1 is free."""

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    name: str
    versions: tuple[str, ...]
    platform: str
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]


def feeds_of(contract: EncoderContract, request: InferRequest) -> dict[str, npt.NDArray[Any]]:
    """The request's tensors by name, after they have been held against the contract.

    Raises:
        BadInput: a tensor missing, unknown, given twice, of another type or shape.
    """
    feeds: dict[str, npt.NDArray[Any]] = {}
    dims: dict[str, int] = {}
    for tensor in request.inputs:
        spec = contract.input(tensor.name)
        if tensor.name in feeds:
            raise BadInput(f"input {tensor.name} was given twice", where=contract.name)
        if tensor.datatype != spec.dtype.value:
            raise BadInput(
                f"input {tensor.name} is {tensor.datatype}, not {spec.dtype.value}",
                where=spec.describe(),
                remedy="Send the datatype of the model's metadata.",
            )
        dims = bind_shape(spec, tensor.shape, dims)
        feeds[tensor.name] = tensor.values
    missing = [spec.name for spec in contract.inputs if spec.name not in feeds]
    if missing:
        raise BadInput(
            f"input {missing[0]} is missing",
            where=contract.name,
            remedy=f"Send: {', '.join(spec.describe() for spec in contract.inputs)}.",
        )
    for name in request.outputs:
        contract.output(name)
    return feeds


def encoder_response(
    request: InferRequest, revision: str, request_id: str, encoder: LoadedEncoder, served: Served
) -> InferResponse:
    """One encoder's tensors, and what made them."""
    parameters: dict[str, Parameter] = {
        ENCODER: encoder.fingerprint,
        ENGINE: served.engine,
        "degraded": served.degraded is not None,
    }
    if served.degraded is not None:
        parameters[DEGRADED] = served.degraded
    outputs = wire_outputs(served.outputs, request.outputs)
    return InferResponse(request.model, revision, request_id, outputs, parameters)


def wire_outputs(
    outputs: Mapping[str, npt.NDArray[Any]], wanted: tuple[str, ...]
) -> tuple[WireTensor, ...]:
    """An encoder's outputs as tensors, the wanted ones in the order asked for."""
    return tuple(
        WireTensor(name, datatype_of(outputs[name]), outputs[name]) for name in wanted or outputs
    )


def multimodal_of(request: InferRequest) -> MultimodalRequest:
    """The pipeline's request: an input per modality.

    BYTES are encoded media or UTF-8 texts, one medium per element; INT16 and FP32 are samples at
    16 kHz, one recording per tensor.

    Raises:
        BadInput, Unsupported: another datatype, or text that is not UTF-8.
    """
    media: dict[str, tuple[Medium, ...]] = {}
    for tensor in request.inputs:
        if tensor.name in media:
            raise BadInput(f"input {tensor.name} was given twice", where=request.model)
        media[tensor.name] = tuple(_media_of(tensor))
    return MultimodalRequest(tuple((name, items) for name, items in media.items() if items))


def _media_of(tensor: WireTensor) -> list[Medium]:
    match tensor.datatype:
        case "BYTES" if tensor.name == "text":
            return [Medium("text/plain", _text(item)) for item in tensor.values.flat]
        case "BYTES":
            return [Medium(f"{tensor.name}/*", item) for item in tensor.values.flat]
        case "INT16" if tensor.values.size:
            return [Medium(PCM16, tensor.values.tobytes())]
        case "FP32" if tensor.values.size:
            samples = np.ascontiguousarray(tensor.values.reshape(-1), np.float32)
            return [Medium("audio/float32", samples)]
    if tensor.datatype in ("INT16", "FP32"):
        raise BadInput(f"input {tensor.name} is empty", where=tensor.name)
    raise Unsupported(
        f"input {tensor.name} is {tensor.datatype}",
        where=tensor.name,
        remedy="Send BYTES (encoded media or text), or samples as INT16 or FP32.",
    )


def _text(item: bytes) -> str:
    try:
        return item.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("the text is not UTF-8", where="text") from error


def pipeline_response(answer: Answer, request: InferRequest) -> InferResponse:
    """The pipeline's answer as tensors: ids, captions, scores, or the embedding itself.

    Raises:
        NotFound, Unsupported: an output that the pipeline never has.
    """
    tensors = {
        "ids": _bytes_tensor("ids", [item.id for item in answer.items]),
        "captions": _bytes_tensor("captions", [item.caption for item in answer.items]),
        "scores": WireTensor(
            "scores", "FP32", np.array([item.score for item in answer.items], np.float32)
        ),
    }
    if answer.embedding is not None:
        tensors = {"embedding": WireTensor("embedding", "FP32", answer.embedding)}
    if answer.transcript is not None or "transcript" in request.outputs:
        tensors["transcript"] = _bytes_tensor("transcript", [answer.transcript or ""])
    for name in request.outputs:
        if name not in tensors:
            raise Unsupported(
                f"the pipeline has no output {name[:80]!r}",
                where=request.model,
                remedy=f"Use: {', '.join(tensors)}.",
            )
    outputs = tuple(tensors[name] for name in request.outputs or tensors)
    reasons = {name: report.reason for name, report in answer.branches.items() if report.reason}
    parameters: dict[str, Parameter] = {
        "degraded": answer.degraded,
        **told_origins(answer.origins),
        **({DEGRADED: "; ".join(f"{n}: {r}" for n, r in reasons.items())} if reasons else {}),
    }
    return InferResponse(request.model, answer.revision, answer.request_id, outputs, parameters)


def encoder_metadata(
    contract: EncoderContract, versions: tuple[str, ...], platform: str
) -> ModelMetadata:
    """An encoder's contract as the protocol tells it."""
    inputs, outputs = (
        tuple(
            TensorMetadata(s.name, s.dtype.value, tuple(_dim(dim) for dim in s.shape))
            for s in specs
        )
        for specs in (contract.inputs, contract.outputs)
    )
    return ModelMetadata(contract.name, versions, platform, inputs, outputs)


def pipeline_metadata(revision: LoadedRevision, versions: tuple[str, ...]) -> ModelMetadata:
    """The whole pipeline as a model: an optional input per branch."""
    inputs = tuple(
        TensorMetadata(name, "INT16" if loaded.transcribe else "BYTES", (-1,))
        for name, loaded in revision.branches.items()
    )
    outputs = [TensorMetadata(name, "BYTES", (-1,)) for name in ("ids", "captions")]
    outputs.append(TensorMetadata("scores", "FP32", (-1,)))
    if revision.bundle.answer.kind == "embedding":
        outputs = [TensorMetadata("embedding", "FP32", (-1,))]
    if any(loaded.transcribe for loaded in revision.branches.values()):
        outputs.append(TensorMetadata("transcript", "BYTES", (1,)))
    name = revision.bundle.service
    return ModelMetadata(name, versions, "modalgate_pipeline", inputs, tuple(outputs))


def _dim(dim: int | str) -> int:
    return dim if isinstance(dim, int) else -1


def _bytes_tensor(name: str, texts: list[str]) -> WireTensor:
    return WireTensor(name, "BYTES", make_bytes([text.encode() for text in texts]))
