"""`modalgate lineage`: what came from what, for people, for programs, and for other tools."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from flows.cli.lineage_tables import show_asked, show_exported, show_graph
from flows.cli.output import Document, answer
from flows.lineage.derive import lineage_of_service
from flows.lineage.find import Asked, ask
from flows.lineage.tell import send_story, stories_of
from flows.workspace import Workspace
from infra.lineage.events import tell_release, write_lines
from validators.contracts.errors import BadInput, ModalgateError, Refused, Unavailable
from validators.lineage.graph import Fault, LineageGraph

OPENLINEAGE = "openlineage"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Service = Annotated[str, typer.Argument(help="The service, as in the pipeline file.")]

lineage = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@lineage.command()
def show(
    word: Annotated[
        str,
        typer.Argument(
            metavar="SERVICE|DIGEST|SAMPLE",
            help="A service, six or more digits of a digest, or a sample's id.",
        ),
    ],
    service: Annotated[
        str | None, typer.Option(help="Look in this service only, for a digest or a sample.")
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="It is a sample's id, whatever else is called so.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what a service, a thing or a sample came from."""

    def work() -> Document:
        asked = ask(Workspace.open(), word, service, sample_only=sample)
        return _checked(asked.whole.faults, _document(asked))

    answer(work, show_asked, as_json=as_json)


@lineage.command()
def graph(service: Service, as_json: Json = False) -> None:
    """Show every thing of a service's releases and what made it."""

    def work() -> Document:
        whole = lineage_of_service(Workspace.open(), service)
        return _checked(whole.faults, graph_rows(whole.graph))

    answer(work, show_graph, as_json=as_json)


@lineage.command()
def export(
    service: Service,
    form: Annotated[str, typer.Option("--format", help="The form: openlineage.")] = OPENLINEAGE,
    send: Annotated[
        bool, typer.Option(help="Send the events to the server that OPENLINEAGE_URL names.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print a service's lineage as OpenLineage events, one JSON object a line."""

    def work() -> Document:
        if form != OPENLINEAGE:
            raise BadInput(
                f"lineage is not exported as {form[:40]!r}", where="--format",
                remedy=f"Write --format {OPENLINEAGE}.",
            )  # fmt: skip
        whole = lineage_of_service(Workspace.open(), service)
        stories = stories_of(whole)
        lines = [write_lines(tell_release(story)) for story in stories]
        events = [json.loads(line) for text in lines for line in text.splitlines()]
        taken = [send_story(story) for story in stories] if send else []
        document = {"service": service, "events": events, "sent": taken if send else None}
        problem = next((item.problem for item in taken if item is not None and item.problem), "")
        if None in taken:
            raise _with(BadInput(
                "no server is named to send to", where="OPENLINEAGE_URL",
                remedy="Set OPENLINEAGE_URL to the address of an OpenLineage server.",
            ), document)  # fmt: skip
        if problem:
            raise _with(Unavailable(
                f"the OpenLineage server did not take all events: {problem}",
                where="OPENLINEAGE_URL", remedy="Look at that server, and send again.",
            ), document)  # fmt: skip
        return _checked(whole.faults, document)

    answer(work, show_exported, as_json=as_json)


def _document(asked: Asked) -> dict[str, Any]:
    return {
        **graph_rows(asked.graph),
        "start": [node.name for node in asked.start],
        "used_by": [_node(node) for node in asked.used_by],
        "sample": asked.sample,
    }


def graph_rows(found: LineageGraph) -> dict[str, Any]:
    return {
        "service": found.service,
        "nodes": [_node(node) for node in found.nodes],
        "runs": [
            {
                "job": run.job,
                "digest": run.digest,
                "inputs": run.inputs,
                "outputs": run.outputs,
                "outcome": run.verdict.outcome if run.verdict else None,
            }
            for run in found.runs
        ],
    }


def _node(node: Any) -> dict[str, Any]:
    return {
        "name": node.name,
        "kind": node.kind,
        "digest": node.digest,
        "label": node.label,
        "facets": dict(node.facets),
    }


def _checked(faults: tuple[Fault, ...], document: dict[str, Any]) -> dict[str, Any]:
    """The document with what is wrong in the lineage; severe faults end in Refused, with it."""
    document = {**document, "faults": faults}
    severe = [fault for fault in faults if fault.severe]
    if severe:
        raise _with(Refused(severe[0].what, where=severe[0].where, remedy=severe[0].remedy),
                    document)  # fmt: skip
    return document


def _with(error: ModalgateError, document: dict[str, Any]) -> ModalgateError:
    error.attachment = document
    return error


def register(app: typer.Typer) -> None:
    app.add_typer(
        lineage, name="lineage", help="Show what a service, a sample or any digest came from."
    )
