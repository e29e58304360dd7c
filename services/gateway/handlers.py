"""What the gateway does, with no transport in it: `rest` and `grpc` only translate.

Every request passes `_serve`: it picks the revision, fixes the deadline, counts and times.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TypeVar

from services.engines.elastic import engine as elastic
from services.gateway import inference
from services.gateway.branches import BranchRunner
from services.gateway.executor import EngineExecutor, Job, expired_error
from services.gateway.inference import InferRequest, InferResponse, ModelMetadata, ServerMetadata
from services.gateway.limits import check_media
from services.gateway.mixing import OriginMismatch, require_origins
from services.gateway.origins import origins_of_parameters
from services.gateway.pipeline import RESERVE_NS, PipelineRunner, Record
from services.gateway.requests import Answer, Call, MultimodalRequest
from services.gateway.revision import LoadedRevision
from services.gateway.revisions import Revisions, Served
from services.gateway.settings import GatewaySettings
from services.gateway.status import status_of
from services.telemetry.metrics import GatewayMetrics
from validators.contracts.errors import ModalgateError, NotFound
from validators.contracts.ports import Clock

EXTENSIONS = ("binary_tensor_data", "model_versions", "multimodal_answer")

T = TypeVar("T")
Work = Callable[[LoadedRevision, int], Awaitable[T]]


@dataclass(slots=True)
class Health:
    """Live as long as the process runs; ready until it drains."""

    draining: bool = False


@dataclass(frozen=True, slots=True)
class Handlers:
    """One service's data plane."""

    revisions: Revisions
    executor: EngineExecutor
    metrics: GatewayMetrics
    clock: Clock
    settings: GatewaySettings
    health: Health = field(default_factory=Health)
    record: Record | None = None

    # -- what the server is ---------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether new requests should come here."""
        return not self.health.draining and self.revisions.ready

    def server_metadata(self) -> ServerMetadata:
        return ServerMetadata("modalgate", version("modalgate"), EXTENSIONS)

    def model_ready(self, model: str, revision: str | None = None) -> bool:
        """Raises NotFound for a model or version that is not loaded."""
        self._find(model, revision)
        return not self.health.draining

    def model_metadata(self, model: str, revision: str | None = None) -> ModelMetadata:
        """Raises NotFound for a model or version that is not loaded."""
        loaded = self._find(model, revision)
        names = self.revisions.names()
        if model == self.revisions.service:
            return inference.pipeline_metadata(loaded, names)
        encoder = loaded.encoder(model)
        platform = f"modalgate_{encoder.engine.manifest.spec.backend}"
        return inference.encoder_metadata(encoder.contract, names, platform)

    # -- what the server does -------------------------------------------------------------

    async def answer(self, call: Call, request: MultimodalRequest) -> Answer:
        """The pipeline's answer to a multimodal request; raises what `PipelineRunner` raises."""
        check_media(request, self.settings)
        answer: Answer | None = None

        async def work(revision: LoadedRevision, deadline_ns: int) -> Answer:
            nonlocal answer
            answer = await self._pipeline(revision).answer(call, request, deadline_ns)
            return answer

        served = self.revisions.choose(call.routing_key)
        label = self._modalities(served, request.modalities)
        return await self._serve(
            call, served, label, work, lambda: bool(answer and answer.degraded)
        )

    async def infer(self, call: Call, request: InferRequest) -> InferResponse:
        """One encoder's tensors, or the whole pipeline's where the model is the service."""
        expected = origins_of_parameters(request.parameters)
        call = dataclasses.replace(call, origins=(*call.origins, *expected))
        served = self.revisions.choose(call.routing_key, request.version)
        if request.model == self.revisions.service:
            return await self._infer_pipeline(call, served, request)
        served.revision.encoder(request.model)
        answer: InferResponse | None = None

        async def work(revision: LoadedRevision, deadline_ns: int) -> InferResponse:
            nonlocal answer
            answer = await self._infer_encoder(call, revision, request, deadline_ns)
            return answer

        return await self._serve(
            call, served, "tensors", work,
            lambda: bool(answer and answer.parameters["degraded"]), model=request.model,
        )  # fmt: skip

    async def _infer_pipeline(
        self, call: Call, served: Served, request: InferRequest
    ) -> InferResponse:
        multimodal = inference.multimodal_of(request)
        check_media(multimodal, self.settings)
        answer: Answer | None = None

        async def work(revision: LoadedRevision, deadline_ns: int) -> InferResponse:
            nonlocal answer
            answer = await self._pipeline(revision).answer(call, multimodal, deadline_ns)
            return inference.pipeline_response(answer, request)

        label = self._modalities(served, multimodal.modalities)
        return await self._serve(
            call, served, label, work, lambda: bool(answer and answer.degraded)
        )

    async def _infer_encoder(
        self, call: Call, revision: LoadedRevision, request: InferRequest, deadline_ns: int
    ) -> InferResponse:
        deadline_ns -= RESERVE_NS
        encoder = revision.encoder(request.model)
        feeds = inference.feeds_of(encoder.contract, request)
        runner = self._runner(revision)
        rows = max((v.shape[0] for v in feeds.values() if v.ndim), default=1)
        job = Job(
            source=request.model,
            rows=rows,
            size_bytes=request.size_bytes,
            arrived_ns=call.arrived_ns,
            deadline_ns=deadline_ns,
            run=lambda _: runner.run_encoder(encoder, feeds),
        )
        (future,) = self.executor.submit([job])
        served = await self._result(future, deadline_ns)
        return inference.encoder_response(request, revision.name, call.request_id, encoder, served)

    async def _result(self, future: asyncio.Future[T], deadline_ns: int) -> T:
        """Raises Overloaded where no worker came free in time, DeadlineExceeded where one did."""
        try:
            await asyncio.wait([future], timeout=max(0.0, self._left_s(deadline_ns)))
            if not future.done():
                raise self.executor.shed([future]) or expired_error()
            return future.result()
        finally:
            future.cancel()

    # -- every request --------------------------------------------------------------------

    async def _serve(
        self,
        call: Call,
        served: Served,
        label: str,
        work: Work[T],
        degraded: Callable[[], bool],
        *,
        model: str | None = None,
    ) -> T:
        outcome = "error"
        with self.revisions.lease(served) as revision:
            try:
                require_origins(call.origins, revision.encoders, model)
                deadline_ns = self._deadline(call, revision)
                result = await _within(work(revision, deadline_ns), self._left_s(deadline_ns))
                outcome = "ok"
                return result
            except ModalgateError as error:
                # Who insists on another version is not answered, and the revision not at fault.
                mismatch = isinstance(error, OriginMismatch)
                outcome = "bad_input" if mismatch else status_of(error).outcome
                raise
            except asyncio.CancelledError:
                outcome = "cancelled"
                raise
            finally:
                self._record(call, served, label, outcome, degraded=outcome == "ok" and degraded())

    def _record(
        self, call: Call, served: Served, label: str, outcome: str, *, degraded: bool
    ) -> None:
        latency_s = (self.clock.monotonic_ns() - call.arrived_ns) / 1e9
        self.metrics.observe_request(
            label, outcome, served.revision.name, latency_s, degraded=degraded
        )
        if outcome in ("cancelled", "overloaded"):
            return  # says nothing about the revision
        served.requests += 1
        served.errors += outcome in ("error", "expired")
        served.degraded += degraded
        if outcome == "ok":
            served.latency_ms.append(latency_s * 1e3)

    def _deadline(self, call: Call, revision: LoadedRevision) -> int:
        timeout_ms = call.timeout_ms
        if timeout_ms is None:
            timeout_ms = self.settings.default_timeout_ms or revision.bundle.slo.p99_ms
        return call.arrived_ns + int(min(timeout_ms, self.settings.max_timeout_ms) * 1e6)

    def _left_s(self, deadline_ns: int) -> float:
        return (deadline_ns - self.clock.monotonic_ns()) / 1e9

    def _find(self, model: str, revision: str | None) -> LoadedRevision:
        if revision is None and not self.revisions.ready:
            raise NotFound(f"no revision of {self.revisions.service} is loaded")
        loaded = self.revisions.choose("", revision).revision
        if model != self.revisions.service:
            loaded.encoder(model)
        return loaded

    def _runner(self, revision: LoadedRevision) -> BranchRunner:
        def observe(encoder: str, latency_s: float, served: elastic.Served | None) -> None:
            self.metrics.observe_engine(encoder, revision.name, latency_s)
            if served is not None:
                self.metrics.observe_shape(
                    encoder, revision.name, served.way, served.padded_share,
                    cut=served.degraded is not None,
                )  # fmt: skip

        return BranchRunner(revision, self.clock, observe)

    def _pipeline(self, revision: LoadedRevision) -> PipelineRunner:
        runner = self._runner(revision)
        return PipelineRunner(revision, self.executor, runner, self.clock, self.record)

    @staticmethod
    def _modalities(served: Served, sent: tuple[str, ...]) -> str:
        """A metric label: only modalities that the revision declares, never a caller's text."""
        known = [name for name in served.revision.branches if name in sent]
        return "+".join(known) if len(known) == len(sent) else "unsupported"


async def _within(work: Awaitable[T], left_s: float) -> T:
    """Raises DeadlineExceeded where the work does not end in time; it is cancelled then."""
    try:
        return await asyncio.wait_for(work, max(0.0, left_s))
    except TimeoutError as error:
        raise expired_error() from error
