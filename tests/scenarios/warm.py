"""A process that has imported everything, and forks to run the command line: `Warm` drives it.

Importing what a release needs takes seconds; a fork of a process that has it takes none. Each run
is a process of its own that runs the real command line and can be killed like one. The parent runs
nothing but imports, so no lock is held when it forks.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn


@dataclass(frozen=True)
class Ran:
    """How a run of the command line ended. A negative code is the signal that ended it."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The one document that `--json` prints, and nothing else."""
        try:
            document: dict[str, Any] = json.loads(self.stdout)
        except ValueError:
            raise AssertionError(f"not one document: {self.stdout[-2000:]}{self.stderr}") from None
        return document


@dataclass(frozen=True)
class Run:
    """A run under way."""

    warm: Warm
    pid: int
    folder: Path

    def kill(self) -> None:
        """SIGKILL to the process itself, and to nothing that it started."""
        os.kill(self.pid, 9)

    def running(self) -> bool:
        return bool(self.warm.ask({"poll": self.pid})["running"])

    def wait(self) -> Ran:
        code = self.warm.ask({"wait": self.pid})["code"]
        texts = (self.folder / name for name in ("stdout", "stderr"))
        return Ran(code, *(path.read_text(errors="replace") for path in texts))

    def progress(self) -> str:
        return (self.folder / "stderr").read_text(errors="replace")


class Warm:
    """The warm process, as its parent sees it."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder, self._count = folder, 0
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.scenarios.warm"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                env={**os.environ, **environment}, text=True,
            )  # fmt: skip

    def start(
        self, *arguments: str, environment: Mapping[str, str | None], cwd: Path | None = None
    ) -> Run:
        """Run `modalgate arguments` in a fork; variables given as None are unset."""
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        for name in ("stdout", "stderr"):
            (folder / name).touch()
        answer = self.ask(
            {"argv": arguments, "environment": dict(environment), "folder": str(folder),
             "cwd": str(cwd or folder)}
        )  # fmt: skip
        return Run(self, answer["pid"], folder)

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, (self._folder / "log").read_text(errors="replace")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def serve() -> None:
    """Answer requests until stdin closes. Returns in a fork, too: then `run` has to follow."""
    ended: dict[int, int] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "argv" in request:
            pid = os.fork()
            if pid == 0:
                run(request)
            answer: dict[str, Any] = {"pid": pid}
        elif "wait" in request:
            answer = {"code": _code(request["wait"], ended, 0)}
        else:
            answer = {"running": _code(request["poll"], ended, os.WNOHANG) is None}
        print(json.dumps(answer), flush=True)


def run(request: Mapping[str, Any]) -> NoReturn:
    """The command line in this process, with its own files for what it prints."""
    os.setsid()
    for name, number in (("stdout", 1), ("stderr", 2)):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        os.dup2(os.open(Path(request["folder"]) / name, flags, 0o600), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(request["cwd"])
    for name, value in request["environment"].items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    sys.argv = ["modalgate", *request["argv"]]
    from flows.cli.main import run as modalgate

    code = 1
    try:
        modalgate()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        traceback.print_exc()
    # As at the end of any process, but for the destructors of native libraries: they would wait for
    # threads that stayed in the parent.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def warm_up(argv: Sequence[str]) -> None:
    """Import what any verb may need, and load the largest model once."""
    import great_expectations
    import prefect.main

    import infra.registry.mlflow
    from flows.cli import main
    from flows.journal import code_digest
    from services.deidentify.recognisers import load_analyzer

    del great_expectations, prefect
    for verb in main.VERBS:
        main.build([verb])
    assert infra.registry.mlflow.MlflowRegistry
    load_analyzer()
    code_digest()
    assert threading.active_count() == 1, threading.enumerate()


def _code(pid: int, ended: dict[int, int], flags: int) -> int | None:
    if pid not in ended:
        found, status = os.waitpid(pid, flags)
        if not found:
            return None
        ended[pid] = os.waitstatus_to_exitcode(status)
    return ended[pid]


if __name__ == "__main__":
    from flows.home import Home
    from flows.orchestration import prepare

    prepare(Home.from_environment())
    warm_up(sys.argv)
    serve()
