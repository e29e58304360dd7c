"""The compatibility flow by the clock: the pipeline's `schedules: {compatibility: ...}`."""

from __future__ import annotations

from collections.abc import Mapping

from prefect import serve
from prefect.deployments.runner import RunnerDeployment
from prefect.schedules import Cron

from flows.compatibility.flow import compatibility
from flows.compatibility.sides import side_of_version
from flows.release.register import CHAMPION
from flows.workspace import Workspace
from validators.compatibility.matrix import Role
from validators.contracts.cron import find_cron_fault
from validators.contracts.errors import BadInput

KEY = "compatibility"
EVERY_DAY = "17 3 * * *"
"""Where a pipeline names no schedule: once a day, off the full hour."""


def live_services(workspace: Workspace) -> list[str]:
    """Every service that the ledger knows and that has a live version."""
    known = sorted({entry.model for entry in workspace.ledger.entries() if entry.model})
    return [name for name in known if workspace.registry.alias(name, CHAMPION) is not None]


def schedules_of(
    workspace: Workspace, services: list[str], cron: str | None = None
) -> dict[str, str]:
    """For each service, when its flow runs: as given, else by its live pipeline, else daily.

    Raises:
        BadInput: an expression that is no five-field cron expression.
        NotFound: a service with no record.
    """
    if cron is not None and (fault := find_cron_fault(cron)) is not None:
        raise BadInput(
            f"{cron!r} is no schedule: {fault}", where="--watch", remedy="Write */15 * * * *.",
        )  # fmt: skip
    return {service: cron or _declared(workspace, service) for service in services}


def serve_schedules(schedules: Mapping[str, str]) -> None:
    """Run each service's flow at its times, in a process of its own, until told to end."""
    made = [
        compatibility.to_deployment(
            name=f"{KEY}-{service}",
            schedule=Cron(cron, timezone="UTC"),
            parameters={"service": service},
        )
        for service, cron in schedules.items()
    ]
    serve(*(item for item in made if isinstance(item, RunnerDeployment)), limit=1)


def _declared(workspace: Workspace, service: str) -> str:
    version = workspace.registry.alias(service, CHAMPION)
    if version is None:
        return EVERY_DAY
    side = side_of_version(workspace, version, Role.LIVE)
    return dict(side.pipeline.schedules).get(KEY, EVERY_DAY)
