"""An approved version behind a canary, to promotion or back: acts on what validators/rollout says.

The state is written down before each act, so that a rollout killed anywhere is taken up again by
the next `deploy` of the same version: the target's verbs are idempotent, what was measured stays.
"""

from __future__ import annotations

import functools
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle

from flows.documents import verdict_rows
from flows.locks import exclusive
from flows.progress import reporter
from flows.release.bundle import revision_of
from flows.release.register import CANDIDATE, CHAMPION, ROLLBACK
from flows.release.values import Probe
from flows.replay import Client, Request, requests_of
from flows.review import Registered, require_certificate, review_of
from flows.workspace import Workspace, actor
from infra.files import write_atomically
from validators.contracts.deployment import DeploymentStatus, RevisionStats
from validators.contracts.digest import Digest, canonical_json, short
from validators.contracts.documents import load
from validators.contracts.errors import Refused, RolledBack, Unavailable
from validators.contracts.ports import DeploymentTarget
from validators.contracts.verdict import Verdict
from validators.review.verdict import require_approval
from validators.rollout.exposure import Measurement
from validators.rollout.plan import CanaryPlan
from validators.rollout.rules import Advance, advance_rollout
from validators.rollout.state import Ending, RolloutState, begin, resume
from validators.rollout.verdict import assess_rollout

STEP = "rollout"
_LOOK_EVERY = 8
"""Requests between two looks at the counters."""


@dataclass(frozen=True, slots=True)
class RolloutRecord:
    """A rollout under way, as it survives its process."""

    version: str
    bundle: Digest
    state: RolloutState


@dataclass(frozen=True, slots=True)
class RolledOut:
    """How it ended; `verdict` is None where the version was serving already."""

    status: DeploymentStatus
    verdict: Verdict | None


class CanaryRolledBack(RolledBack):
    """The canary gave the traffic back, and the verdict that says why."""

    def __init__(self, verdict: Verdict, reason: str, where: str) -> None:
        super().__init__(
            f"the canary was rolled back: {reason}",
            where=where,
            remedy="Read the rollout verdict, mend what it names, and release again.",
        )
        self.verdict = verdict


def roll_out(workspace: Workspace, found: Registered, *, probe: bool) -> RolledOut:
    """Bring an approved version up, move the traffic step by step, and promote or roll back.

    Args:
        probe: send the release's own pictures and captions as traffic, beside whatever comes.
            Without it, a service that nobody uses is rolled back as unmeasured.

    Raises:
        AwaitingReview, Blocked: not approved, or its certificate is not the bundle's.
        CanaryRolledBack: the canary was worse than its limits or its baseline, or was not measured.
        Conflict: another rollout of this service is running.
    """
    service = found.version.model
    with exclusive(workspace.home.lock(f"rollout-{service}"), f"a rollout of {service}"):
        require_approval(review_of(workspace, found), workspace.clock.wall_ns() / 1e9)
        require_certificate(workspace, found)
        target = workspace.target(found.pipeline.deployment.target)
        champion = workspace.registry.alias(service, CHAMPION)
        if champion is not None and champion.version == found.version.version:
            status = _bring_up(workspace, target, found)
            if status.stable == short(found.version.bundle):  # live, or stopped and now back
                return RolledOut(status, None)
        return _Rollout(workspace, found, target, probe).run()


class _Rollout:
    def __init__(
        self, workspace: Workspace, found: Registered, target: DeploymentTarget, probe: bool
    ) -> None:
        self._workspace, self._found, self._target, self._probe = workspace, found, target, probe
        self._service = found.version.model
        self._file = workspace.home.folder("rollouts") / f"{self._service}.json"

    def run(self) -> RolledOut:
        reporter().started(STEP)
        record = self._read()
        if record is not None and record.state.ending is not None:
            state = record.state  # killed between the decision and its end
        else:
            status = _bring_up(self._workspace, self._target, self._found)
            state = resume(record.state, self._now_s()) if record else self._begin(status)
            self._write(state)
            state = self._drive(state, status)
        self._end(state)
        verdict = self._judge(state)
        self._file.unlink(missing_ok=True)
        reporter().finished(STEP, verdict.outcome.value)
        return RolledOut(self._target.status(self._service), verdict)

    def _begin(self, status: DeploymentStatus) -> RolloutState:
        name = short(self._found.version.bundle)
        deployment, slo = self._found.pipeline.deployment, self._found.pipeline.slo
        stable = None if status.stable in (None, name) else self._stats(status.stable)
        return begin(CanaryPlan.from_deployment(deployment, slo), name, stable, self._now_s())

    def _drive(self, state: RolloutState, status: DeploymentStatus) -> RolloutState:
        """Move the traffic until the rollout has an ending."""
        if status.rest_url is None:
            raise Unavailable("the service has no address", where=status.message)
        requests = self._traffic()
        mark = functools.partial(self._target.mark_probe, self._service)
        with Client(status.rest_url, mark) as client:
            self._weigh(state)
            while state.ending is None:
                self._send(client, requests)
                state, decision = advance_rollout(state, self._measure(state), self._now_s())
                self._write(state)
                if isinstance(decision, Advance):
                    self._weigh(state)
                self._tell(state)
        return state

    def _end(self, state: RolloutState) -> None:
        if state.ending is Ending.PROMOTED:
            self._promote(state)
        else:
            self._roll_back(state)

    def _send(self, client: Client, requests: Iterator[Request] | None) -> None:
        if requests is None:
            time.sleep(0.2)
            return
        for _ in range(_LOOK_EVERY):
            client.send(next(requests))

    def _traffic(self) -> Iterator[Request] | None:
        store = self._workspace.store
        probes = load(
            tuple[Probe, ...], store.get(self._found.record.probes), where=self._found.record.probes
        )
        requests = list(requests_of(probes, store.get)) if self._probe else []
        return cycle(requests) if requests else None

    def _measure(self, state: RolloutState) -> Measurement | None:
        try:
            stats = {item.name: item for item in self._target.stats(self._service)}
        except Unavailable:  # unmeasured for now: the plan's patience decides
            return None
        canary = stats.get(state.canary)
        if canary is None:
            return None
        return Measurement(canary, stats.get(state.stable) if state.stable else None)

    def _stats(self, name: str | None) -> RevisionStats | None:
        return next((s for s in self._target.stats(self._service) if s.name == name), None)

    def _weigh(self, state: RolloutState) -> None:
        if state.stable is not None:
            self._target.set_canary(self._service, state.percent)

    def _promote(self, state: RolloutState) -> None:
        if state.stable is not None:
            self._target.promote(self._service)
        _settle(self._workspace, self._found)

    def _roll_back(self, state: RolloutState) -> None:
        """Give the traffic back, then say so. A first release has nothing to go back to."""
        reason = state.reason
        if state.stable is not None:
            self._target.roll_back(self._service, reason)
        else:
            self._target.stop(self._service, forget=True)
        version = self._found.version
        self._workspace.ledger.append(
            actor=actor(), action="roll-back", model=version.model, version=version.version,
            reason=reason, details={"bundle": version.bundle},
        )  # fmt: skip
        verdict = self._judge(state)
        self._file.unlink(missing_ok=True)
        error = CanaryRolledBack(verdict, reason, f"{version.model} {version.version}")
        error.attachment["verdicts"] = verdict_rows([verdict])
        error.attachment["deployment"] = self._target.status(self._service)
        raise error

    def _judge(self, state: RolloutState) -> Verdict:
        verdict = assess_rollout(state)
        document = canonical_json(verdict)
        self._workspace.write_evidence(self._service, f"{verdict.gate}.json", document)
        return verdict

    def _tell(self, state: RolloutState) -> None:
        wanted = state.plan.minimum_requests
        done = min(state.step_canary.requests, wanted)
        reporter().advanced(STEP, done, wanted, f"{state.percent} % of traffic")

    def _now_s(self) -> float:
        return self._workspace.clock.monotonic_ns() / 1e9

    def _read(self) -> RolloutRecord | None:
        """The rollout of this very bundle, if one was interrupted."""
        try:
            record = load(RolloutRecord, self._file.read_bytes(), where=str(self._file))
        except FileNotFoundError:
            return None
        return record if record.bundle == self._found.version.bundle else None

    def _write(self, state: RolloutState) -> None:
        version = self._found.version
        write_atomically(
            self._file, canonical_json(RolloutRecord(version.version, version.bundle, state))
        )


def roll_back(
    workspace: Workspace, service: str, target_name: str, reason: str
) -> DeploymentStatus:
    """Give the traffic back to the revision before, and move the aliases with it."""
    target, registry = workspace.target(target_name), workspace.registry
    before = target.status(service)
    status = target.roll_back(service, reason)
    champion, previous = registry.alias(service, CHAMPION), registry.alias(service, ROLLBACK)
    stale = champion is not None and status.stable != short(champion.bundle)
    lost = before.canary or (before.stable if before.stable != status.stable else None)
    if stale and lost is None and champion is not None:
        lost = short(champion.bundle)  # killed before the aliases had moved: they move now
    if lost is None:
        return status  # rolled back before: nothing moved, so nothing is recorded
    known = registry.versions(service)
    workspace.ledger.append(
        actor=actor(), action="roll-back", model=service, reason=reason,
        version=next((item.version for item in known if short(item.bundle) == lost), ""),
        details={"revision": lost, "serving": status.stable or ""},
    )  # fmt: skip
    if stale and champion is not None and previous is not None:
        registry.move_alias(
            service, CHAMPION, previous.version, expected=champion.version,
            actor=actor(), reason=reason,
        )  # fmt: skip
        registry.move_alias(
            service, ROLLBACK, None, expected=previous.version, actor=actor(), reason=reason
        )
    return status


def _bring_up(
    workspace: Workspace, target: DeploymentTarget, found: Registered
) -> DeploymentStatus:
    """Apply the bundle; a laid-out folder that does not hold any more is laid out again, once."""
    revision = revision_of(workspace, found.bundle)
    try:
        return target.apply(revision)
    except Refused:
        shutil.rmtree(revision.bundle_path, ignore_errors=True)
        return target.apply(revision_of(workspace, found.bundle))


def _settle(workspace: Workspace, found: Registered) -> None:
    """Aliases after a promotion: each move is repeated safely after a crash."""
    registry, version = workspace.registry, found.version
    service, who = version.model, actor()
    champion = registry.alias(service, CHAMPION)
    if champion is not None and champion.version == version.version:
        return
    reason = f"promoted {version.version}"
    if champion is not None:
        rollback = registry.alias(service, ROLLBACK)
        if rollback is None or rollback.version != champion.version:
            registry.move_alias(
                service, ROLLBACK, champion.version,
                expected=rollback.version if rollback else None, actor=who, reason=reason,
            )  # fmt: skip
    registry.move_alias(
        service, CHAMPION, version.version,
        expected=champion.version if champion else None, actor=who, reason=reason,
    )  # fmt: skip
    candidate = registry.alias(service, CANDIDATE)
    if candidate is not None and candidate.version == version.version:
        registry.move_alias(
            service, CANDIDATE, None, expected=version.version, actor=who, reason=reason
        )
