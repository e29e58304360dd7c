"""An engine in a child process: it may hang, crash or eat memory without taking its caller down."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from services.children.errors import ChildCrashed
from services.children.guard import POLL_S, Cancel, Limits
from services.children.process import StartedChild, revive, start_child
from services.children.report import ErrorDocument
from services.engines.frames import pack_frame, receive_frame
from services.engines.requests import SERVE_ENGINE, ServeRequest
from services.engines.tensors import Arrays
from validators.contracts.engine import EngineManifest
from validators.contracts.errors import ModalgateError, Refused, Unavailable
from validators.contracts.ports import Tensors

LOAD_S = 300.0
CALL_S = 60.0

_PIPE_BYTES = 1024**2  # what Linux lets an unprivileged process ask for
_LAST_WORDS_S = 5.0  # between the end of a child's pipe and its own
_LOOK_EVERY_S = 0.25
_LIMITS = Limits(timeout_s=LOAD_S)


@dataclass(frozen=True, slots=True)
class _Pipes:
    """This process's ends. The child's are closed here once it has them."""

    calls: int
    answers: int

    def close(self) -> None:
        os.close(self.calls)
        os.close(self.answers)


class IsolatedEngine:
    """Implements the `RunningEngine` port; calls take turns.

    The child dies with the thread that opened it. Once it had to be killed, or died, every further
    call raises Unavailable.
    """

    def __init__(
        self, manifest: EngineManifest, child: StartedChild, pipes: _Pipes, call_s: float
    ) -> None:
        self._manifest = manifest
        self._child = child
        self._pipes: _Pipes | None = pipes
        self._call_s = call_s
        self._turn = threading.Lock()
        self._looked = 0.0

    @property
    def manifest(self) -> EngineManifest:
        return self._manifest

    @property
    def pid(self) -> int:
        """The child's process, and its group."""
        return self._child.guard.process.pid

    def run(self, feeds: Tensors) -> dict[str, npt.NDArray[Any]]:
        """As the port says.

        Raises:
            ChildTimedOut, ChildCrashed, ChildTooLarge, BuildCancelled: and the child is gone.
            Otherwise as the engine does in the child.
        """
        with self._turn:
            arrays, error = self._exchange(feeds)
        if error is not None:
            raise revive(error)
        return arrays

    def close(self) -> None:
        """Nothing of the child survives this; a call in progress is waited for."""
        with self._turn:
            self._end()

    def _exchange(self, feeds: Tensors) -> tuple[Arrays, ErrorDocument | None]:
        if self._pipes is None:
            raise Unavailable("the engine has been closed", where=self._manifest.spec.encoder)
        pieces = pack_frame(feeds)
        self._child.guard.allow(self._call_s)
        with self._or_end():
            for piece in pieces:
                self._write(self._pipes, piece)
            arrays, error = self._receive(self._pipes)
            self._look()
        return arrays, error

    def await_ready(self) -> None:
        """Until the engine is loaded. Raises what `load_engine` does, or as `run`."""
        with self._turn, self._or_end():
            if self._pipes is not None:
                self._receive(self._pipes, ready=True)

    @contextmanager
    def _or_end(self) -> Iterator[None]:
        """Whatever goes wrong inside, the child is gone after it; its death is explained."""
        try:
            yield
        except EOFError:
            death = self._death()
            self._end()
            raise death from None
        except BaseException:
            self._end()
            raise

    def _receive(
        self, pipes: _Pipes, *, ready: bool = False
    ) -> tuple[Arrays, ErrorDocument | None]:
        def fill(buffer: memoryview) -> None:
            while buffer:
                self._wait([pipes.answers], [])
                count = os.readv(pipes.answers, [buffer])
                if not count:
                    raise EOFError
                buffer = buffer[count:]

        try:
            arrays, error = receive_frame(fill)
        except Refused as problem:
            raise self._nonsense() from problem
        expected = set() if ready else {spec.name for spec in self._manifest.outputs}
        if error is None and arrays.keys() != expected:
            raise self._nonsense()
        return arrays, error

    def _write(self, pipes: _Pipes, data: memoryview) -> None:
        while data:
            self._wait([], [pipes.calls])
            try:
                data = data[os.write(pipes.calls, data) :]
            except BrokenPipeError as error:
                raise EOFError from error

    def _wait(self, reading: list[int], writing: list[int]) -> None:
        """Until a pipe is ready, looking after the child meanwhile."""
        while not any(select.select(reading, writing, [], POLL_S)):
            self._looked = time.perf_counter()
            self._child.guard.check()
            if self._child.guard.process.poll() is not None:
                raise EOFError

    def _look(self) -> None:
        """Calls that are too short to be waited for are looked at now and then as well."""
        now = time.perf_counter()
        if now - self._looked > _LOOK_EVERY_S:
            self._looked = now
            self._child.guard.check()

    def _death(self) -> ModalgateError:
        """Why there is no answer: what the task raised, or how its process ended."""
        guard = self._child.guard
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.process.wait(_LAST_WORDS_S)
        guard.end()
        try:
            self._child.result()
        except ModalgateError as error:
            return error
        return self._nonsense()

    def _nonsense(self) -> ChildCrashed:
        return ChildCrashed(
            "the child process answered what is no answer; it was stopped",
            where=self._child.guard.what,
            remedy="Look at the model: its engine may write where it should not.",
        )

    def _end(self) -> None:
        pipes, self._pipes = self._pipes, None
        if pipes is not None:
            self._child.guard.end()
            pipes.close()


def open_isolated(
    manifest: EngineManifest,
    engine_path: Path,
    folder: Path,
    *,
    subject: str = "",
    limits: Limits = _LIMITS,
    call_s: float = CALL_S,
    threads: int = 1,
    cancel: Cancel | None = None,
) -> IsolatedEngine:
    """The engine, loaded in a child with every check of `load_opened`, tried with its canary.

    `manifest` is one whose signature `open_manifest` has checked; `folder` is the child's own
    scratch; `limits.timeout_s` is for loading, `call_s` for each call; `subject` names the engine
    in errors.

    Raises:
        As `load_engine`, and ChildTimedOut, ChildCrashed, ChildTooLarge, BuildCancelled.
    """
    (calls_in, calls_out), (answers_in, answers_out) = os.pipe(), os.pipe()
    nobody = os.open(os.devnull, os.O_WRONLY)  # listens to the names of phases
    request = ServeRequest(manifest, str(engine_path.resolve()), threads, calls_in, answers_out)
    try:
        child = start_child(
            SERVE_ENGINE, request, folder, subject=subject or manifest.spec.encoder,
            phases=nobody, limits=limits, cancel=cancel, pass_fds=(calls_in, answers_out),
        )  # fmt: skip
    except BaseException:
        os.close(calls_out)
        os.close(answers_in)
        raise
    finally:
        for descriptor in (calls_in, answers_out, nobody):
            os.close(descriptor)
    for descriptor in (calls_out, answers_in):
        os.set_blocking(descriptor, False)
        with contextlib.suppress(OSError):  # a user may hold too many; smaller pipes are slower
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    engine = IsolatedEngine(manifest, child, _Pipes(calls_out, answers_in), call_s)
    engine.await_ready()
    return engine
