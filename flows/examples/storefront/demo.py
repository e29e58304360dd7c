"""The demonstration: release the reference service, ask it things, show the answers.

State goes to MODALGATE_HOME as everywhere, so a second demonstration shows what a second release
costs. Nothing is left running, unless it is asked to be kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from rich.table import Table

from flows.builder import ensure_builder
from flows.cli.exits import exit_code
from flows.cli.output import console, notices
from flows.cli.progress import progress_bars
from flows.cli.release import run_release, show
from flows.examples.storefront.packages import package_file
from flows.examples.storefront.speech import Speaker
from flows.workspace import Workspace
from validators.contracts.errors import ModalgateError

PIPELINE = Path(__file__).with_name("pipeline.yaml")
PEOPLE = ["ana", "ben"]
SERVICE = "storefront"
TRIES = 3
SPOKEN = "I would like a cup of coffee"


@dataclass(frozen=True, slots=True)
class Question:
    """One request, and how to describe it to the reader."""

    asked: str
    content_type: str
    content: bytes


def questions() -> Iterator[Question]:
    """Written, spoken and shown: one of each."""
    yield Question("written: a sleeping cat", "text/plain", b"a sleeping cat")
    yield Question(f"spoken:  {SPOKEN}", "audio/wav", Speaker().say(SPOKEN))
    picture = package_file("skimage", "data", "chelsea.png")
    yield Question("shown:   a photograph of a cat", "image/png", picture.read_bytes())


class Unanswered(ModalgateError):
    """The service did not answer a question of the demonstration."""


def ask(rest_url: str) -> Table:
    """The answers of the running service, as a table. Raises Unanswered."""
    table = Table(title="Asked over REST", title_justify="left")
    for column in ("request", "best match", "second", "heard", "ms"):
        table.add_column(column)
    for question in questions():
        document, elapsed_ms = _send(rest_url, question)
        best, second = (item["caption"] for item in document["items"][:2])
        heard = document.get("transcript") or ""
        table.add_row(question.asked, best, second, heard, f"{elapsed_ms:.0f}")
    return table


def _send(rest_url: str, question: Question) -> tuple[dict[str, Any], float]:
    """The answer and how long it took, ms; asked again where a busy machine was too late."""
    for _ in range(TRIES):
        started = time.perf_counter()
        response = httpx.post(
            f"{rest_url}/v1/answer",
            content=question.content,
            headers={"content-type": question.content_type, "x-request-timeout-ms": "5000"},
            timeout=30,
        )
        elapsed_ms = (time.perf_counter() - started) * 1000
        document: dict[str, Any] = response.json()
        if response.status_code == httpx.codes.OK:
            return document, elapsed_ms
    raise Unanswered(
        document["error"]["what"], where=question.asked, remedy=document["error"]["remedy"]
    )


def demonstrate(*, keep: bool) -> int:
    """The whole demonstration; the exit code."""
    started = time.monotonic()
    workspace = Workspace.open()
    target = workspace.target("local")
    try:
        with progress_bars(notices):
            document = run_release(PIPELINE, PEOPLE, deploy=True)
        show({**document, "duration_s": time.monotonic() - started})
        console.print(ask(document["deployment"].rest_url))
    except ModalgateError as error:
        show(error.attachment)
        notices.print(f"[bold red]error[/] {error}", soft_wrap=True)
        return exit_code(error)
    finally:
        if not keep:
            target.stop(SERVICE)
    if keep:
        ensure_builder(workspace.home, SERVICE)
        console.print(f"still running; end it with: modalgate stop {SERVICE}")
    return 0
