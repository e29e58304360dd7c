"""`modalgate drift`: whether live traffic still looks like what the live version was made from."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from flows.cli.drift_tables import show_explained, show_look, show_looks, show_schedule
from flows.cli.output import Document, answer, notices
from flows.drift_watch import schedule
from flows.drift_watch.check import HOURS, check
from flows.drift_watch.explain import explain_service, explain_window
from flows.drift_watch.flow import drift_watch
from flows.drift_watch.watched import Watched
from flows.orchestrated import orchestrated
from flows.workspace import Workspace
from validators.contracts.digest import plain
from validators.contracts.errors import BadInput, Blocked, Undecided
from validators.contracts.verdict import GatePolicy, Verdict, require_pass

Service = Annotated[str, typer.Argument(help="The service, as in the pipeline file.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

drift = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@drift.command("check")
def check_now(
    service: Service,
    hours: Annotated[
        float, typer.Option(min=0.01, max=24 * 31, help="How far to look back.")
    ] = HOURS,
    as_json: Json = False,
) -> None:
    """Judge what was recorded lately: exit 0 where it passes, 3 where it drifted, 6 undecided."""

    def work() -> Document:
        made = check(Watched.open(Workspace.open(), service), hours)
        document = dict(plain(made).items())
        _stop(max(made.verdicts, key=lambda item: item.outcome.severity), document)
        return document

    answer(work, show_look, as_json=as_json)


@drift.command()
def watch(
    service: Annotated[str | None, typer.Argument(help="The service; or --all.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every service that is live.")] = False,
    once: Annotated[bool, typer.Option("--once", help="One look, and no schedule.")] = False,
    cron: Annotated[
        str | None, typer.Option(metavar="CRON", help="Instead of the pipelines' own schedules.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Look by the pipelines' schedules until stopped, or once; tell alarms, start what follows."""
    if (service is None) != every:
        answer(_refuse_names, lambda _: None, as_json=as_json)

    def work() -> Document:
        with orchestrated(told_to_children=not once):
            if once:
                return drift_watch(service)
            workspace = Workspace.open()
            planned = schedule.plans_of(workspace, [service] if service else None, cron)
            for plan in planned:
                notices.print(
                    f"{plan.service}: {plan.cron} (UTC), an alarm starts: {plan.on_alarm}"
                )
            schedule.serve_plans(planned)
            return {"schedules": {plan.service: plan.cron for plan in planned}}

    answer(work, show_looks, as_json=as_json)


@drift.command()
def explain(
    service: Service,
    window: Annotated[
        str | None, typer.Option(metavar="DIGEST", help="A judged window; default: the latest.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say why: what moved, by how much, in which slices, and what to do."""

    def work() -> Document:
        workspace = Workspace.open()
        return (
            explain_service(workspace, service)
            if window is None
            else explain_window(workspace, service, window)
        )

    answer(work, show_explained, as_json=as_json)


@drift.command("schedule")
def schedule_service(
    service: Service,
    pool: Annotated[str, typer.Option(help="The work pool of the orchestrator.")] = "modalgate",
    remove: Annotated[bool, typer.Option("--remove", help="Take all of it away.")] = False,
    as_json: Json = False,
) -> None:
    """Set up the schedule and the automation of a service at PREFECT_API_URL; twice is once."""

    def work() -> Document:
        workspace = Workspace.open()
        (plan,) = schedule.plans_of(workspace, [service], None)
        return schedule.remove_plan(plan) if remove else schedule.deploy_plan(plan, pool)

    answer(work, show_schedule, as_json=as_json)


@drift.command()
def forget(service: Service, as_json: Json = False) -> None:
    """Remove everything that was recorded of a service's live requests."""

    def work() -> Document:
        return {"service": service, "windows_removed": Workspace.open().windows(service).forget()}

    answer(work, lambda document: notices.print(f"{document['windows_removed']} windows removed"),
           as_json=as_json)  # fmt: skip


def _stop(verdict: Verdict, document: dict[str, Any]) -> None:
    """Raise what the verdict says, with the document."""
    try:
        require_pass(verdict, GatePolicy())
    except (Blocked, Undecided) as error:
        error.attachment = document
        raise


def _refuse_names() -> Document:
    raise BadInput(
        "name one service, or say --all", where="drift watch",
        remedy="Write: modalgate drift watch SERVICE, or modalgate drift watch --all",
    )  # fmt: skip


def register(app: typer.Typer) -> None:
    app.add_typer(drift, name="drift", help="Watch live traffic for drift.")
