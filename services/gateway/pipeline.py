"""A multimodal request over its branches: queue, fuse what has come, answer.

Content decides the route: each modality sent goes to the branch of its name. What was not sent is
masked. The fusion policy says when enough has come; what comes later is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from services.engines.elastic.engine import OutsideProfiles
from services.fusion.mean import fuse_vectors
from services.fusion.policies import FusedBranch, FusionRound, Ready, Starved, Wait
from services.gateway.branches import BranchResult, BranchRunner
from services.gateway.executor import EngineExecutor, Job, expired_error
from services.gateway.requests import Answer, BranchReport, Call, Medium, MultimodalRequest
from services.gateway.revision import LoadedRevision
from services.gateway.shortfall import explain_failed, explain_late
from validators.contracts.errors import BadInput, DeadlineExceeded, Overloaded, Unsupported
from validators.contracts.ports import Clock
from validators.contracts.slo import CLASS_BOUNDS

Futures = dict[str, "asyncio.Future[BranchResult]"]

Record = Callable[[LoadedRevision, Call, MultimodalRequest, Mapping[str, BranchResult]], None]
"""Told of each answered request, and of the branches that the answer was made from."""

RESERVE_NS = 5_000_000
"""Kept before the deadline for fusing and sending what has come by then."""

_TOO_LATE = (DeadlineExceeded, Overloaded)
"""How a branch's work ends that ran out of time while it ran, or before."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PipelineRunner:
    """Answers requests with one revision."""

    revision: LoadedRevision
    executor: EngineExecutor
    runner: BranchRunner
    clock: Clock
    record: Record | None = None

    async def answer(self, call: Call, request: MultimodalRequest, deadline_ns: int) -> Answer:
        """The answer, before the deadline or not at all.

        Raises:
            Unsupported: a modality, or a number of them, that this service has no route for.
            BadInput: a medium that cannot be read.
            Overloaded: no room in the queue, or no worker came free in time.
            DeadlineExceeded: too few branches came in time.
        """
        require_route(self.revision, request)
        deadline_ns -= RESERVE_NS
        media = dict(request.media)
        # The order of the branches in the pipeline is the order of their work.
        until_ns = {
            name: self._branch_deadline(name, call.arrived_ns, deadline_ns)
            for name in self.revision.branches
            if name in media
        }
        futures = self._submit(call, media, until_ns, deadline_ns)
        try:
            decision = await self._follow(futures, until_ns, deadline_ns)
            if isinstance(decision, Starved):
                raise self._shortfall(decision, futures, until_ns, deadline_ns)
        finally:
            for future in futures.values():
                if not future.cancel() and not future.cancelled():
                    future.exception()  # looked at: nothing more to say about it
        answer = self._compose(call, decision, futures)
        if self.record is not None:
            results = {name: futures[name].result() for name in decision.used}
            self.record(self.revision, call, request, results)
        return answer

    def _branch_deadline(self, name: str, arrived_ns: int, deadline_ns: int) -> int:
        timeout_ms = self.revision.branches[name].branch.timeout_ms
        if timeout_ms is None:
            return deadline_ns
        return min(deadline_ns, arrived_ns + int(timeout_ms * 1e6))

    def _submit(
        self,
        call: Call,
        media: Mapping[str, tuple[Medium, ...]],
        until_ns: Mapping[str, int],
        deadline_ns: int,
    ) -> Futures:
        """The branches' work, queued; a branch whose own time is up by now is late, not queued."""
        now_ns = self.clock.monotonic_ns()
        spent = [name for name, at_ns in until_ns.items() if at_ns <= now_ns < deadline_ns]
        queued = [name for name in until_ns if name not in spent]
        jobs = [self._job(name, media[name], call, until_ns[name]) for name in queued]
        submitted = dict(zip(queued, self.executor.submit(jobs), strict=True)) if jobs else {}
        return {name: submitted[name] if name in submitted else _late() for name in until_ns}

    def _job(self, name: str, media: tuple[Medium, ...], call: Call, deadline_ns: int) -> Job:
        return Job(
            source=name,
            rows=len(media),
            size_bytes=sum(medium.size_bytes for medium in media),
            arrived_ns=call.arrived_ns,
            deadline_ns=deadline_ns,
            run=lambda checkpoint: self.runner.run(name, media, checkpoint),
        )

    async def _follow(
        self, futures: Futures, until_ns: Mapping[str, int], deadline_ns: int
    ) -> Ready | Starved:
        """Feed the policy until it decides; a request that cannot be read ends at once."""
        weights = {name: self.revision.branches[name].branch.weight for name in futures}
        branches = [FusedBranch(name, weights[name], until_ns[name]) for name in futures]
        fusion_round = FusionRound(self.revision.bundle.fusion, branches, deadline_ns)
        pending = dict(futures)
        while True:
            for name in [name for name, future in pending.items() if future.done()]:
                self._report_to(fusion_round, name, pending.pop(name))
            now_ns = self.clock.monotonic_ns()
            decision = fusion_round.decide(now_ns)
            if not isinstance(decision, Wait):
                return decision
            await asyncio.wait(
                pending.values(),
                timeout=max(0.0, (decision.until_ns - now_ns) / 1e9),
                return_when=asyncio.FIRST_COMPLETED,
            )

    def _report_to(
        self, fusion_round: FusionRound, name: str, future: asyncio.Future[BranchResult]
    ) -> None:
        """An unreadable medium is the caller's to repair: raised. Any other failure is masked.

        A shape that no engine takes is one: other branches may still answer.
        """
        error = future.exception()
        if isinstance(error, BadInput) and not isinstance(error, OutsideProfiles):
            raise error
        if error is None and future.result().vector is not None:
            fusion_round.arrived(name)
        elif not isinstance(error, _TOO_LATE):
            if error is not None:
                kind = type(error).__name__
                _log.warning("branch %s of %s failed: %s", name, self.revision.name, kind)
            fusion_round.failed(name)

    def _shortfall(
        self,
        decision: Starved,
        futures: Futures,
        until_ns: Mapping[str, int],
        deadline_ns: int,
    ) -> BaseException:
        """Why there is no answer: what failed if anything did, the clock otherwise."""
        failure = explain_failed(
            decision.failed, [futures[name].exception() for name in decision.failed]
        )
        if failure is not None:
            return failure
        shed = self.executor.shed(futures.values())
        if shed is not None:
            return shed
        timeouts_ms = {name: self.revision.branches[name].branch.timeout_ms for name in futures}
        to_the_end = any(until_ns[name] >= deadline_ns for name in decision.late)
        return explain_late(decision.late, timeouts_ms, to_the_end)

    def _compose(self, call: Call, decision: Ready, futures: Futures) -> Answer:
        results = {name: futures[name].result() for name in decision.used}
        vectors = [(name, r.vector) for name, r in results.items() if r.vector is not None]
        weights = [self.revision.branches[name].branch.weight for name, _ in vectors]
        vector = fuse_vectors([vector for _, vector in vectors], weights)
        answer, catalogue = self.revision.bundle.answer, self.revision.catalogue
        retrieves = answer.kind == "retrieval" and catalogue is not None
        origins = {n: origin for r in results.values() for n, origin in r.origins.items()}
        return Answer(
            request_id=call.request_id,
            session_id=call.session_id,
            revision=self.revision.name,
            branches={n: _report(futures.get(n), results.get(n)) for n in self.revision.branches},
            degraded=decision.degraded or any(r.degraded for r in results.values()),
            origins=dict(sorted(origins.items())),
            items=catalogue.nearest(vector, answer.top_k) if retrieves and catalogue else (),
            embedding=None if retrieves else vector,
            transcript=next((r.transcript for r in results.values() if r.transcript), None),
        )


def require_route(revision: LoadedRevision, request: MultimodalRequest) -> None:
    """Raises Unsupported where content alone says that nothing here can serve the request."""
    known = ", ".join(revision.branches)
    if not request.media:
        raise Unsupported(
            "the request holds no image, text or audio",
            where=revision.bundle.service,
            remedy=f"Send at least one of: {known}.",
        )
    strange = [name for name in request.modalities if name not in revision.branches]
    if strange:
        raise Unsupported(
            f"unsupported combination: {' + '.join(sorted(request.modalities))}",
            where=f"no branch for {', '.join(strange)}",
            remedy=f"{revision.bundle.service} takes: {known}.",
        )
    most = CLASS_BOUNDS[revision.bundle.slo.slo_class].max_modalities
    if most is not None and len(request.media) > most:
        raise Unsupported(
            f"unsupported combination: {len(request.media)} modalities in one request",
            where=f"class {revision.bundle.slo.slo_class.value}",
            remedy=f"Send at most {most}.",
        )


def _report(future: asyncio.Future[BranchResult] | None, used: BranchResult | None) -> BranchReport:
    if future is None:
        return BranchReport("missing")
    if used is not None:
        return BranchReport("used", round(used.ms, 3), used.degraded)
    if future.cancelled() or isinstance(future.exception(), _TOO_LATE):
        return BranchReport("late")
    silent = future.exception() is None and future.result().vector is None
    return BranchReport("failed" if silent or future.exception() else "late")


def _late() -> asyncio.Future[BranchResult]:
    future: asyncio.Future[BranchResult] = asyncio.get_running_loop().create_future()
    future.set_exception(expired_error())
    return future
