"""The watch by the clock, and what an alarm starts: deployments and automations, made idempotently.

`serve_plans` runs them in this process until it is told to end; `deploy_plan` sets them up at an
orchestrator whose workers run them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect import Flow, get_client, serve
from prefect.automations import Automation
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.deployments.runner import RunnerDeployment
from prefect.events.actions import RunDeployment
from prefect.events.schemas.automations import EventTrigger, Posture
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.schedules import Cron

from flows.compatibility.schedule import live_services
from flows.drift_watch.flow import drift_watch
from flows.drift_watch.followup import ACTOR, drift_review
from flows.drift_watch.watched import Watched
from flows.release.flow import release
from flows.release.places import pipeline_file_of
from flows.workspace import Workspace
from infra.alerts.events import ALARM, resource_of
from validators.contracts.cron import find_cron_fault
from validators.contracts.errors import BadInput, NotFound

KEY = "drift_watch"
EVERY_QUARTER = "*/15 * * * *"
"""Where a pipeline names no schedule."""

ROOT = Path(__file__).parents[2]
REBUILD, REVIEW, NONE = "rebuild", "review", "none"


@dataclass(frozen=True, slots=True)
class Plan:
    """When a service is looked at, and what an alarm of it starts."""

    service: str
    cron: str
    on_alarm: str
    pipeline_file: str = ""  # for a rebuild

    @property
    def name(self) -> str:
        return f"drift-{self.service}"

    @property
    def follow_up(self) -> tuple[Flow[Any, Any], dict[str, Any]] | None:
        """The flow that an alarm starts, with its parameters."""
        if self.on_alarm == REBUILD:
            return release, {"pipeline_path": self.pipeline_file, "author": ACTOR}
        if self.on_alarm == REVIEW:
            return drift_review, {"service": self.service}
        return None


def plans_of(workspace: Workspace, services: Sequence[str] | None, cron: str | None) -> list[Plan]:
    """Of each named service, or of every live one: by `cron`, or as its live pipeline says.

    Raises:
        BadInput: no five-field cron expression.  NotFound: nothing is live, or a rebuild is asked
            for and the release's pipeline file is not on this machine.
    """
    if cron is not None and (fault := find_cron_fault(cron)) is not None:
        raise BadInput(
            f"{cron!r} is no schedule: {fault}", where="--cron", remedy="Write */15 * * * *.",
        )  # fmt: skip
    names = live_services(workspace) if services is None else list(services)
    if not names:
        raise NotFound(
            "nothing is live", where="--all", remedy="Release something: modalgate release FILE"
        )
    return [_plan(Watched.open(workspace, name), cron) for name in names]


def serve_plans(plans: Sequence[Plan]) -> None:
    """Look at the given times, and run what alarms start, each in a process; until told to end."""
    made = [_served(drift_watch, plan, {"service": plan.service}, plan.cron) for plan in plans]
    for plan in plans:
        follow_up = plan.follow_up
        if follow_up is None:
            _remove_automation(plan)
            continue
        deployment = _served(follow_up[0], plan, follow_up[1], None)
        made.append(deployment)
        _automate(plan, _applied(deployment))
    serve(*made, limit=2)


def deploy_plan(plan: Plan, pool: str) -> dict[str, Any]:
    """Set the plan up at the configured orchestrator; its answer as a document.

    Raises:
        BadInput: no orchestrator is configured: an embedded one ends with this command.
    """
    _require_orchestrator()
    _make_pool(pool)
    _deploy(drift_watch, plan, pool, {"service": plan.service}, plan.cron)
    document = {"service": plan.service, "schedule": plan.cron, "pool": pool}
    follow_up = plan.follow_up
    if follow_up is None:
        _remove_automation(plan)
        return {**document, "on_alarm": NONE}
    run = _deploy(follow_up[0], plan, pool, follow_up[1], None)
    return {**document, "on_alarm": plan.on_alarm, "automation": str(_automate(plan, run))}


def remove_plan(plan: Plan) -> dict[str, Any]:
    """Take away what `deploy_plan` made; what is not there is no matter."""
    _require_orchestrator()
    _remove_automation(plan)
    removed = []
    with get_client(sync_client=True) as client:
        for name in (drift_watch.name, drift_review.name, release.name):
            try:
                found = client.read_deployment_by_name(f"{name}/{plan.name}")
                client.delete_deployment(found.id)
                removed.append(f"{name}/{plan.name}")
            except ObjectNotFound:
                continue
    return {"service": plan.service, "removed": removed}


def _plan(watched: Watched, cron: str | None) -> Plan:
    pipeline = watched.pipeline
    on_alarm = pipeline.alerts.on_alarm
    cron = cron or dict(pipeline.schedules).get(KEY, EVERY_QUARTER)
    if on_alarm != REBUILD:
        return Plan(watched.service, cron, on_alarm)
    path = pipeline_file_of(watched.workspace, watched.version.bundle)
    if path is None or not path.is_file():
        raise NotFound(
            f"the pipeline file that {watched.service} was released from is not on this machine",
            where="alerts.on_alarm",
            remedy="Release it from here once, or write on_alarm: review.",
        )
    return Plan(watched.service, cron, on_alarm, str(path))


def _served(
    flow: Flow[Any, Any], plan: Plan, parameters: dict[str, Any], cron: str | None
) -> RunnerDeployment:
    made = flow.to_deployment(
        name=plan.name,
        schedule=Cron(cron, timezone="UTC") if cron else None,
        parameters=parameters,
    )
    assert isinstance(made, RunnerDeployment)  # noqa: S101 - outside of an event loop
    return made


def _applied(deployment: RunnerDeployment) -> UUID:
    found = deployment.apply()
    assert isinstance(found, UUID)  # noqa: S101 - outside of an event loop
    return found


def _deploy(
    flow: Flow[Any, Any], plan: Plan, pool: str, parameters: dict[str, Any], cron: str | None
) -> UUID:
    """The flow's code is that of this installation, read where the worker runs."""
    module = flow.fn.__module__.replace(".", "/")
    source = flow.from_source(str(ROOT), f"{module}.py:{flow.fn.__name__}")
    assert isinstance(source, Flow)  # noqa: S101 - outside of an event loop
    made = source.deploy(
        name=plan.name,
        work_pool_name=pool,
        schedule=Cron(cron, timezone="UTC") if cron else None,
        parameters=parameters,
        build=False,
        push=False,
        print_next_steps=False,
    )
    assert isinstance(made, UUID)  # noqa: S101 - outside of an event loop
    return made


def _make_pool(pool: str) -> None:
    with get_client(sync_client=True) as client:
        try:
            client.create_work_pool(WorkPoolCreate(name=pool, type="process"))
        except ObjectAlreadyExists:
            return


def _automate(plan: Plan, deployment: UUID) -> UUID:
    """One automation a service: an alarm that begins runs the deployment; a reminder does not."""
    wanted = Automation(
        name=f"modalgate-{plan.name}",
        description=f"Drift in live traffic of {plan.service} starts: {plan.on_alarm}.",
        trigger=EventTrigger(
            expect={ALARM},
            match={
                "prefect.resource.id": resource_of(plan.service),
                "modalgate.reminder": "false",
            },
            posture=Posture.Reactive,
            threshold=1,
        ),
        actions=[
            RunDeployment(
                source="selected", deployment_id=deployment, parameters=None, job_variables=None
            )
        ],
    )
    there = _automation(wanted.name)
    if there is None:
        created = wanted.create()
        assert isinstance(created, Automation) and created.id is not None  # noqa: S101
        return created.id
    assert there.id is not None  # noqa: S101 - it was read
    wanted.id = there.id
    wanted.update()
    return there.id


def _remove_automation(plan: Plan) -> None:
    there = _automation(f"modalgate-{plan.name}")
    if there is not None:
        there.delete()


def _automation(name: str) -> Automation | None:
    try:
        found = Automation.read(name=name)
    except ValueError:  # how Prefect says that there is none
        return None
    return found if isinstance(found, Automation) else None


def _require_orchestrator() -> None:
    if not os.environ.get("PREFECT_API_URL", "").strip():
        raise BadInput(
            "no orchestrator is configured, and an embedded one ends with this command",
            where="PREFECT_API_URL",
            remedy="Set it to your server's API, or run: modalgate drift watch SERVICE",
        )
