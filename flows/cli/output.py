"""How every verb answers: a table for people, or with `--json` exactly one document."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import typer
from rich.console import Console
from rich.markup import escape

from flows.cli.exits import DONE, FAILED, STATUSES, exit_code
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
    release still has verdicts to show) is kept beside it. With `--json`, whatever else is printed
    while the work is done goes to standard error.
    """
    with _kept_for_the_document() if as_json else nullcontext():
        code, document = _done(work)
    if as_json:
        _print(document)
    else:
        if len(document) > ("error" in document) + 1:
            show(document)
        if "error" in document:
            _complain(document["error"])
    raise typer.Exit(code)


def refuse(error: ModalgateError, *, as_json: bool) -> NoReturn:
    """Leave with an error that came before any verb's work."""
    code = exit_code(error)
    if as_json:
        _print({"status": STATUSES[code], "error": error.document()})
    else:
        _complain(error.document())
    sys.exit(code)


def answered() -> bool:
    """Whether this process has printed its document."""
    return bool(_PRINTED)


_PRINTED: list[bool] = []


def _print(document: Document) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(plain(document))).decode() + "\n")
    _PRINTED.append(True)


def _done(work: Callable[[], Document]) -> tuple[int, dict[str, Any]]:
    try:
        return DONE, {"status": STATUSES[DONE], **work()}
    except ModalgateError as error:
        code, found, said = exit_code(error), error.attachment, error.document()
    except Exception as error:  # the last edge: one document is promised, whatever happens
        traceback.print_exc()
        code, found, said = FAILED, {}, _fault(error)
    return code, {**found, "status": STATUSES[code], "error": said}


def _fault(error: Exception) -> dict[str, str]:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return {
        "what": f"an unforeseen {type(error).__name__}",
        "where": f"{Path(last.filename).name}:{last.lineno}",
        "remedy": "This is a fault of the platform: report it with the traceback above.",
    }


@contextmanager
def _kept_for_the_document() -> Iterator[None]:
    """Standard output as standard error for a while, for child processes and C libraries too."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _complain(error: Mapping[str, str]) -> None:
    notices.print(f"[bold red]error[/] {escape(error['what'])}", soft_wrap=True)
    if error["where"]:
        notices.print(f"[dim]where[/] {escape(error['where'])}", soft_wrap=True)
    if error["remedy"]:
        notices.print(f"[green]do[/]    {escape(error['remedy'])}", soft_wrap=True)
