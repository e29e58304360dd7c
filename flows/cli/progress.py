"""Progress bars for people: one line a step, with rate and remaining time on long ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from flows.progress import report_to


@contextmanager
def progress_bars(console: Console, *, shown: bool = True) -> Iterator[None]:
    """Draw the progress of everything inside on a console, where it is to be shown."""
    if not shown:
        yield
        return
    with ProgressBars(console) as bars, report_to(bars):
        yield


class ProgressBars:
    """A Reporter that draws on a console. Off a terminal it prints a line per finished step."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = console.is_terminal
        self._tasks: dict[str, TaskID] = {}
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]•[/]"),
            TextColumn("{task.description:<34}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("[dim]{task.fields[detail]}"),
            console=console,
            disable=not self._live,
        )

    def __enter__(self) -> ProgressBars:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def started(self, step: str, detail: str = "") -> None:
        if step not in self._tasks:
            self._tasks[step] = self._progress.add_task(step, total=None, detail=detail)

    def advanced(self, step: str, done: int, total: int, detail: str = "") -> None:
        self.started(step)
        self._progress.update(self._tasks[step], completed=done, total=total, detail=detail)

    def finished(self, step: str, detail: str = "") -> None:
        self.started(step)
        task = self._tasks[step]
        total = self._progress.tasks[self._progress.task_ids.index(task)].total or 1
        self._progress.update(task, completed=total, total=total, detail=detail)
        self._progress.stop_task(task)
        if not self._live:
            self._console.print(f"  {step:<34} {detail}", highlight=False)
