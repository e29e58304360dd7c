"""The methods of the three services."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from services.gateway.grpc import health_pb2 as pbh
from services.gateway.grpc import inference_pb2 as pb
from services.gateway.grpc import modalgate_pb2 as pbm
from services.gateway.grpc.converters import (
    decode_multimodal,
    decode_request,
    encode_answer,
    encode_metadata,
    encode_response,
)
from services.gateway.grpc.errors import with_statuses
from services.gateway.handlers import Handlers
from services.gateway.identifiers import check_identifier, parse_timeout_ms
from services.gateway.origins import HEADER, origins_of_headers
from services.gateway.requests import Call

_LEAST_S = 1e-6
"""A deadline that has passed already is still a deadline."""

Context = grpc.aio.ServicerContext[Any, Any]


class GrpcEndpoints:
    """Translates gRPC to `Handlers` and back."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    def services(self) -> list[grpc.GenericRpcHandler]:
        """What a server registers."""
        return [
            _service(
                "inference.GRPCInferenceService",
                {
                    "ServerLive": (self.server_live, pb.ServerLiveRequest),
                    "ServerReady": (self.server_ready, pb.ServerReadyRequest),
                    "ModelReady": (self.model_ready, pb.ModelReadyRequest),
                    "ServerMetadata": (self.server_metadata, pb.ServerMetadataRequest),
                    "ModelMetadata": (self.model_metadata, pb.ModelMetadataRequest),
                    "ModelInfer": (self.model_infer, pb.ModelInferRequest),
                },
            ),
            _service("modalgate.v1.MultiModal", {"Answer": (self.answer, pbm.MultiModalRequest)}),
            _service("grpc.health.v1.Health", {"Check": (self.check, pbh.HealthCheckRequest)}),
        ]

    @with_statuses
    async def server_live(self, _: pb.ServerLiveRequest, __: Context) -> pb.ServerLiveResponse:
        return pb.ServerLiveResponse(live=True)

    @with_statuses
    async def server_ready(self, _: pb.ServerReadyRequest, __: Context) -> pb.ServerReadyResponse:
        return pb.ServerReadyResponse(ready=self._handlers.ready)

    @with_statuses
    async def model_ready(self, request: pb.ModelReadyRequest, _: Context) -> pb.ModelReadyResponse:
        ready = self._handlers.model_ready(request.name, request.version or None)
        return pb.ModelReadyResponse(ready=ready)

    @with_statuses
    async def server_metadata(
        self, _: pb.ServerMetadataRequest, __: Context
    ) -> pb.ServerMetadataResponse:
        metadata = self._handlers.server_metadata()
        return pb.ServerMetadataResponse(
            name=metadata.name, version=metadata.version, extensions=metadata.extensions
        )

    @with_statuses
    async def model_metadata(
        self, request: pb.ModelMetadataRequest, _: Context
    ) -> pb.ModelMetadataResponse:
        metadata = self._handlers.model_metadata(request.name, request.version or None)
        return encode_metadata(metadata)

    @with_statuses
    async def model_infer(
        self, request: pb.ModelInferRequest, context: Context
    ) -> pb.ModelInferResponse:
        call = self._open_call(context)
        decoded = decode_request(request)
        call = call.renamed(request.id, decoded.parameters.get("session_id"))
        return encode_response(await self._handlers.infer(call, decoded))

    @with_statuses
    async def answer(
        self, request: pbm.MultiModalRequest, context: Context
    ) -> pbm.MultiModalAnswer:
        call = self._open_call(context).renamed(None, request.session_id)
        return encode_answer(await self._handlers.answer(call, decode_multimodal(request)))

    @with_statuses
    async def check(self, request: pbh.HealthCheckRequest, _: Context) -> pbh.HealthCheckResponse:
        ready = self._handlers.ready
        status = pbh.HealthCheckResponse.SERVING if ready else pbh.HealthCheckResponse.NOT_SERVING
        return pbh.HealthCheckResponse(status=status)

    def _open_call(self, context: Context) -> Call:
        """The call's identity and timeout: the gRPC deadline, or a shorter one in the metadata."""
        arrived_ns = self._handlers.clock.monotonic_ns()
        metadata = context.invocation_metadata() or ()
        headers = {str(key): value for key, value in metadata}
        timeouts = [parse_timeout_ms(_text(headers.get("x-request-timeout-ms")))]
        left_s = context.time_remaining()
        timeouts.append(None if left_s is None else max(left_s, _LEAST_S) * 1e3)
        known = [timeout for timeout in timeouts if timeout is not None]
        return Call(
            request_id=check_identifier(_text(headers.get("x-request-id"))) or uuid.uuid4().hex,
            arrived_ns=arrived_ns,
            timeout_ms=min(known) if known else None,
            session_id=check_identifier(_text(headers.get("x-session-id"))),
            origins=origins_of_headers([_text(value) for key, value in metadata if key == HEADER]),
        )


def _text(value: str | bytes | None) -> str | None:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value


def _service(
    name: str, methods: dict[str, tuple[Callable[[Any, Any], Awaitable[Any]], Any]]
) -> grpc.GenericRpcHandler:
    return grpc.method_handlers_generic_handler(
        name,
        {
            method: grpc.unary_unary_rpc_method_handler(
                function,
                request_deserializer=message.FromString,
                response_serializer=_serialize,
            )
            for method, (function, message) in methods.items()
        },
    )


def _serialize(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data
