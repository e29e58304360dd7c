"""How every verb answers: a table for people, or with `--json` exactly one document."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec
import typer
from rich.console import Console

from flows.cli.exits import DONE, STATUSES, exit_code
from validators.contracts.digest import plain
from validators.contracts.errors import ModalgateError

_WIDTH = None if sys.stdout.isatty() else 120
console = Console(stderr=False, highlight=False, width=_WIDTH)
notices = Console(stderr=True, highlight=False)

Document = Mapping[str, Any]


def answer(
    work: Callable[[], Document], show: Callable[[Document], None], *, as_json: bool
) -> NoReturn:
    """Do the work, print its document or show it, and leave with the right exit code.

    Any ModalgateError becomes `error {what, where, remedy}`; what the error carries (a blocked
    release still has verdicts to show) is kept beside it.
    """
    code, document = DONE, dict[str, Any]()
    try:
        document = {"status": STATUSES[DONE], **work()}
    except ModalgateError as error:
        code = exit_code(error)
        document = {**error.attachment, "status": STATUSES[code], "error": error.document()}
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(plain(document))).decode() + "\n")
    else:
        if len(document) > ("error" in document) + 1:
            show(document)
        if "error" in document:
            _complain(document["error"])
    raise typer.Exit(code)


def _complain(error: Mapping[str, str]) -> None:
    notices.print(f"[bold red]error[/] {error['what']}", soft_wrap=True)
    if error["where"]:
        notices.print(f"[dim]where[/] {error['where']}", soft_wrap=True)
    if error["remedy"]:
        notices.print(f"[green]do[/]    {error['remedy']}", soft_wrap=True)
