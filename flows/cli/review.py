"""`modalgate review`: what is registered, what it rests on, and people's word on it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from flows.cli.output import Document, answer, console
from flows.cli.tables import show_gates
from flows.documents import verdict_rows
from flows.review import Registered, Word, choose, decide, describe, review_of
from flows.workspace import Workspace, actor
from validators.contracts.digest import short
from validators.review import Action, ReviewState, standing

Service = Annotated[str, typer.Argument(help="The service, as in the pipeline file.")]
Version = Annotated[str, typer.Argument(help="The version number that `review list` shows.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Person = Annotated[str | None, typer.Option("--as", help="Who decides; default: the login name.")]
Reason = Annotated[str, typer.Option(help="Why: a sentence on what was looked at.")]

review = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@review.command("list")
def list_versions(service: Service, as_json: Json = False) -> None:
    """List the registered versions of a service, newest first."""

    def work() -> Document:
        workspace = Workspace.open()
        known = sorted(workspace.registry.versions(service), key=lambda item: -int(item.version))
        rows = [_row(workspace, describe(workspace, version)) for version in known]
        return {"service": service, "versions": rows}

    def show(document: Document) -> None:
        for row in document["versions"]:
            aliases = ", ".join(row["aliases"])
            console.print(
                f"{row['version']:>4}  {short(row['bundle'])}  {row['review']:<9} {aliases}"
            )
        if not document["versions"]:
            console.print(f"nothing of {service} is registered yet")

    answer(work, show, as_json=as_json)


@review.command("show")
def show_version(service: Service, version: Version, as_json: Json = False) -> None:
    """Show a version: gates, findings, certificate, and where its review stands."""

    def work() -> Document:
        workspace = Workspace.open()
        found = describe(workspace, choose(workspace, service, version))
        return {**_row(workspace, found), "verdicts": verdict_rows(found.verdicts)}

    answer(work, _show_version, as_json=as_json)


@review.command()
def approve(
    service: Service,
    version: Version,
    reason: Reason,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Approve a version. Nobody approves a release of their own."""
    _say(service, version, Word(person or actor(), Action.APPROVE, reason), as_json=as_json)


@review.command()
def reject(
    service: Service,
    version: Version,
    reason: Reason,
    person: Person = None,
    as_json: Json = False,
) -> None:
    """Reject a version: it is never deployed."""
    _say(service, version, Word(person or actor(), Action.REJECT, reason), as_json=as_json)


@review.command()
def audit(as_json: Json = False) -> None:
    """Verify the ledger: every entry, and the chain between them."""

    def work() -> Document:
        workspace = Workspace.open()
        return {"entries": workspace.ledger.verify(), "ledger": workspace.ledger.entries()}

    def show(document: Document) -> None:
        for entry in document["ledger"]:
            console.print(
                f"{entry.sequence:>5}  {entry.actor:<12} {entry.action:<12} "
                f"{entry.model} {entry.version}  {entry.reason}"
            )
        console.print(f"[green]{document['entries']} entries, the chain holds[/]")

    answer(work, show, as_json=as_json)


def _say(service: str, version: str, word: Word, *, as_json: bool) -> None:
    def work() -> Document:
        workspace = Workspace.open()
        found = describe(workspace, choose(workspace, service, version))
        decide(workspace, found, word)
        return _row(workspace, found)

    answer(work, _show_version, as_json=as_json)


def _row(workspace: Workspace, found: Registered) -> dict[str, Any]:
    state: ReviewState = review_of(workspace, found)
    stands = standing(state, workspace.clock.wall_ns() / 1e9)
    return {
        "service": found.version.model,
        "version": found.version.version,
        "bundle": found.version.bundle,
        "author": state.request.author,
        "aliases": found.version.aliases,
        "review": stands.status.value.lower(),
        "approved_by": stands.approved_by,
        "unattended": stands.unattended,
        "lacking": stands.lacking,
        "certificate": found.record.certificate,
    }


def _show_version(document: Document) -> None:
    if "verdicts" in document:
        show_gates(console, document["verdicts"])
    if "version" not in document:
        return
    console.print(f"version     {document['service']} {document['version']}")
    console.print(f"bundle      {short(document['bundle'])}")
    console.print(f"author      {document['author']}")
    console.print(f"review      {document['review']}")
    for sentence in document["lacking"]:
        console.print(f"            {sentence}")
    if document["approved_by"]:
        how = " (unattended)" if document["unattended"] else ""
        console.print(f"approved by {', '.join(document['approved_by'])}{how}")


def register(app: typer.Typer) -> None:
    app.add_typer(review, name="review", help="List, show, approve and reject versions.")
