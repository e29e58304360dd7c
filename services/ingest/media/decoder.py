"""One child process that decodes: asked for a file at a time, watched, and ended whole."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from services.children.errors import ChildCrashed, ChildTimedOut, ChildTooLarge
from services.children.guard import POLL_S, Cancel, Limits
from services.children.process import StartedChild, start_child
from services.ingest.media.limits import MediaLimits
from services.ingest.media.sources import MediaFile
from services.ingest.media.wire import (
    DECODE_MEDIA,
    DecodeRequest,
    Message,
    Order,
    receive_message,
)
from validators.contracts.errors import BadInput, ModalgateError, Refused, TooLarge, Unavailable

START_S = 300.0
_PIPE_BYTES = 1024**2
_LAST_WORDS_S = 5.0
_LOOK_EVERY_S = 0.25
_FAULTS = frozenset(
    (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGTRAP)
)


class Decoder:
    """One child. `ready` for an order when it has answered the last one to its end."""

    def __init__(self, folder: Path, limits: MediaLimits, cancel: Cancel | None) -> None:
        self.ready = True
        self.orders = 0
        self._limits = limits
        self._looked = 0.0
        self._waited_s = 0.0
        self._name = ""
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._answers, answers_out = os.pipe()
        nobody = os.open(os.devnull, os.O_WRONLY)  # listens to the names of phases
        bounds = Limits(timeout_s=limits.stall_s, memory_bytes=limits.memory_bytes)
        try:
            self._started: StartedChild = start_child(
                DECODE_MEDIA, DecodeRequest(theirs.fileno(), answers_out), folder,
                subject="a file", phases=nobody, limits=bounds, cancel=cancel,
                pass_fds=(theirs.fileno(), answers_out),
            )  # fmt: skip
        except BaseException:
            self._orders.close()
            os.close(self._answers)
            raise
        finally:
            theirs.close()
            os.close(answers_out)
            os.close(nobody)
        os.set_blocking(self._answers, False)
        self._poll = select.poll()  # select(2) ends at the 1024th descriptor
        self._poll.register(self._answers, select.POLLIN)
        with contextlib.suppress(OSError):  # a user may hold too many; smaller pipes are slower
            fcntl.fcntl(self._answers, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    @property
    def pid(self) -> int:
        return self._started.guard.process.pid

    def ask(self, order: Order, file: MediaFile, after: str) -> Message:
        """The first message that answers an order."""
        self.ready = False
        self.orders += 1
        self._name = order.name
        self._waited_s = 0.0
        with contextlib.suppress(BrokenPipeError):  # it is dead: hearing it says how
            socket.send_fds(self._orders, [msgspec.json.encode(order)], [file.descriptor])
        return self.hear(after)

    def hear(self, after: str) -> Message:
        """The next message. `after` says which item was the last good one, for errors.

        Raises: BadInput, TooLarge, where the decoder could not stand the file.
        """
        if self._answers < 0:
            raise Unavailable("the decoders have been closed", where=self._name)
        # The first answer waits for the libraries to be loaded.
        self._started.guard.allow(self._limits.stall_s + (START_S if self.orders == 1 else 0))
        with self.trusted(after):
            message = receive_message(self._fill)
        self._look()
        self.ready = message.head.done
        return message

    @contextlib.contextmanager
    def trusted(self, after: str) -> Iterator[None]:
        """What shows inside that the child is not to be trusted any more ends it, explained."""
        where = f"{self._name}{after}"
        try:
            yield
        except EOFError:
            raise self._death(where) from None
        except ChildTimedOut as error:
            raise self._refuse("its decoder makes no progress; it was stopped", where) from error
        except ChildTooLarge as error:
            raise TooLarge(
                f"its decoder takes more than {self._limits.memory_bytes >> 20} MiB of memory",
                where=where, remedy="Give a smaller file, or raise the limit.",
            ) from error  # fmt: skip
        except Refused as error:
            raise self._refuse("its decoder answers what is no answer", where) from error

    def end(self) -> None:
        """Nothing of it survives this."""
        self.ready = False
        if self._answers >= 0:  # once: its number may be another process's later
            self._started.guard.end()
            self._orders.close()
            os.close(self._answers)
            self._answers = -1

    def _fill(self, buffer: memoryview) -> None:
        while buffer:
            self._wait()
            count = os.readv(self._answers, [buffer])
            if not count:
                raise EOFError
            buffer = buffer[count:]

    def _wait(self) -> None:
        started = time.perf_counter()
        while not self._poll.poll(POLL_S * 1000):
            self._looked = time.perf_counter()
            self._started.guard.check()
            if self._waited_s + self._looked - started > self._limits.decode_s:
                raise ChildTimedOut("the decoder has been waited for too long")
        self._waited_s += time.perf_counter() - started

    def _look(self) -> None:
        """A child that answers quickly is looked at now and then as well."""
        now = time.perf_counter()
        if now - self._looked > _LOOK_EVERY_S:
            self._looked = now
            with self.trusted(""):
                self._started.guard.check()

    def _death(self, where: str) -> ModalgateError:
        guard = self._started.guard
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.process.wait(_LAST_WORDS_S)
        self.end()
        code = guard.process.returncode
        if code < 0 and -code in _FAULTS:
            return self._refuse(f"its decoder crashed ({signal.Signals(-code).name})", where)
        try:
            self._started.result()
        except ModalgateError as error:
            return error
        return ChildCrashed("the decoder left without an answer", where=where)

    def _refuse(self, what: str, where: str) -> BadInput:
        return BadInput(
            what, where=where, remedy="Export the file again with an ordinary program."
        )  # fmt: skip
