"""The ledger in a file: who did what to which version, one JSON line each, chained by digests.

    <path>         the entries, only ever appended to
    <path>.head    the number of entries and the digest of the last one
    <path>.lock    held while the ledger is read or appended to
    <path>.torn    what killed writers left half-written, kept for whoever wonders

An entry that was changed, removed or moved breaks the chain; the head shows where entries at the
end are missing. Both witness accidents and careless edits: whoever may rewrite the whole folder
can forge them, so keep it for one user, and back it up.

An entry counts once its line is whole and flushed. A line without its end was never acknowledged:
the next append moves it aside.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from infra import files
from infra.registry.chain import GENESIS, Head, broken, read_chain, read_end, seal
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import BadInput, TooLarge
from validators.contracts.ports import Clock, LedgerEntry

MAX_LINE_BYTES = 64 * 1024

_REMEDY = "Mount or restore the folder, check that this user may write it, and run again."


class FileLedger:
    """The `Ledger` port on a file, which is created where it is missing; safe between processes.

    Every read checks the chain, so a forged approval is never believed.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path.absolute()
        self._clock = clock
        with self._faults():
            files.make_private_folder(self._path.parent)

    def append(
        self,
        *,
        actor: str,
        action: str,
        model: str,
        version: str,
        reason: str,
        details: Mapping[str, str] | None = None,
    ) -> LedgerEntry:
        """Add an entry; it is durable on return.

        Raises:
            BadInput: no actor or no action.  TooLarge: a line over MAX_LINE_BYTES.
            Refused: the ledger's end is damaged.  Unavailable: it cannot be written.
        """
        if not actor.strip() or not action.strip():
            raise BadInput(
                "a ledger entry needs an actor and an action",
                where=str(self._path),
                remedy="Say who acts and what they do.",
            )
        with self._held():
            self._set_torn_line_aside()
            head = self._read_head()
            end = read_end(self._last_line(), head)
            if end != head:  # a killed writer's entry: the head never falls two behind
                self._write_head(end)
            entry = seal(
                LedgerEntry(
                    sequence=end.entries,
                    at_ms=self._clock.wall_ns() // 1_000_000,
                    actor=actor,
                    action=action,
                    model=model,
                    version=version,
                    reason=reason,
                    details=tuple(sorted((details or {}).items())),
                    previous=end.digest,
                    digest=GENESIS,
                )
            )
            self._write(entry)
        return entry

    def entries(self, model: str | None = None) -> Sequence[LedgerEntry]:
        """The entries in order, of one model or of all. Raises Refused as `verify` does."""
        return [entry for entry in self._chain() if model is None or entry.model == model]

    def verify(self) -> int:
        return len(self._chain())

    def _chain(self) -> list[LedgerEntry]:
        with self._held():
            head, lines = self._read_head(), list(self._lines())
        return read_chain(lines, head)

    def _write(self, entry: LedgerEntry) -> None:
        line = canonical_json(entry) + b"\n"
        if len(line) > MAX_LINE_BYTES:
            raise TooLarge(
                f"the ledger entry has {len(line)} bytes, over {MAX_LINE_BYTES}",
                where=str(self._path),
                remedy="Shorten the reason, and store long details as an object.",
            )
        before = files.append_durably(self._path, line)
        try:
            self._write_head(Head(entry.sequence + 1, entry.digest))
        except OSError:  # a full disk: what was not acknowledged is not there
            os.truncate(self._path, before)
            raise

    def _write_head(self, head: Head) -> None:
        files.write_atomically(self._beside("head"), canonical_json(head))

    def _lines(self) -> Iterator[bytes]:
        """The whole lines. The lock is ours, so one without its end is a dead writer's."""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as stream:
            while line := stream.readline(MAX_LINE_BYTES):
                if line.endswith(b"\n") or len(line) == MAX_LINE_BYTES:
                    yield line.removesuffix(b"\n")

    def _last_line(self) -> bytes | None:
        _, tail = self._tail()
        return tail[:-1].rsplit(b"\n", 1)[-1] if tail else None

    def _set_torn_line_aside(self) -> None:
        """Cut what a killed writer left after the last whole line, keeping a copy beside."""
        start, tail = self._tail()
        if not tail or tail.endswith(b"\n"):
            return
        whole = tail.rfind(b"\n") + 1
        if whole == 0 and start > 0:
            raise broken(self._read_head().entries, "not an entry")
        files.append_durably(self._beside("torn"), tail[whole:] + b"\n")
        with self._path.open("r+b") as stream:
            stream.truncate(start + whole)
            os.fsync(stream.fileno())

    def _tail(self) -> tuple[int, bytes]:
        """The end of the file, long enough for any line, and where it starts."""
        try:
            with self._path.open("rb") as stream:
                start = max(0, stream.seek(0, os.SEEK_END) - 2 * MAX_LINE_BYTES)
                stream.seek(start)
                return start, stream.read(2 * MAX_LINE_BYTES)
        except FileNotFoundError:
            return 0, b""

    def _read_head(self) -> Head:
        path = self._beside("head")
        try:
            return load(Head, path.read_bytes(), where=str(path))
        except FileNotFoundError:
            return Head()

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        with self._faults(), files.locked(self._beside("lock")):
            yield

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{suffix}")

    def _faults(self) -> contextlib.AbstractContextManager[None]:
        return files.disk_faults("the ledger", str(self._path), _REMEDY)
