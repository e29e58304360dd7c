"""One service's recorded windows.

    <bundle>/<recorded_ms>-<digest>.window    sealed, 0600, in folders of 0700
    <bundle>/*.window.damaged                 what could not be opened, until retention

Several gateways write and several watches read: a file appears whole under a name of its own, and
goes by being removed, so that no lock is needed. Bounds hold after every write.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infra.files import disk_faults, make_private_folder, sweep, write_atomically
from infra.windows.sealing import OVERHEAD_BYTES, seal, unseal
from validators.contracts.digest import Digest, digest_bytes, hex_of, require_digest
from validators.contracts.errors import Refused, TooLarge
from validators.contracts.ports import Clock

SUFFIX, DAMAGED = ".window", ".window.damaged"
MAX_WINDOW_BYTES = 64 * 1024 * 1024
_NAME = re.compile(r"([0-9]{14})-([0-9a-f]{64})\.window(\.damaged)?")
_BUNDLE = re.compile(r"[0-9a-f]{64}")
_DAY_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one service's windows may take, the oldest going first."""

    files: int = 2000
    size_bytes: int = 256 * 1024 * 1024
    age_s: float = 7 * _DAY_S


@dataclass(frozen=True, slots=True)
class Entry:
    """A recorded window: which bundle's requests, when it was written, its content's digest."""

    bundle: Digest
    recorded_ms: int
    window: Digest
    size_bytes: int
    damaged: bool = False

    @property
    def name(self) -> str:
        return f"{self.recorded_ms:014d}-{hex_of(self.window)}{SUFFIX}"


class WindowFolder:
    """The windows of one service. `key` seals them (32 bytes)."""

    def __init__(
        self, folder: Path, service: str, key: bytes, clock: Clock, bounds: Bounds | None = None
    ) -> None:
        self._folder, self._service, self._key = folder, service, key
        self._clock, self._bounds = clock, bounds or Bounds()

    def put(self, bundle: Digest, window: bytes) -> Entry:
        """Write a window down, whole or not at all.

        Raises:
            Unavailable: no room on the disk; nothing partial stays.  TooLarge: larger than any is.
        """
        if len(window) > MAX_WINDOW_BYTES:
            raise TooLarge(f"a window of {len(window)} bytes is too large", where=self._service)
        now_ms = max(self._clock.wall_ns() // 1_000_000, 0)
        size_bytes = len(window) + OVERHEAD_BYTES
        entry = Entry(bundle, now_ms, digest_bytes(window), size_bytes)
        with self._faults():
            folder = self._folder / hex_of(bundle)
            make_private_folder(folder)
            path = folder / entry.name
            write_atomically(path, seal(self._key, self._place(entry), window))
        self.retain()
        return entry

    def entries(self) -> list[Entry]:
        """Every readable name, oldest first; what is damaged is not among them."""
        return [entry for entry in self._all() if not entry.damaged]

    def read(self, entry: Entry) -> bytes:
        """The window's bytes. Nothing is moved: what is damaged lies there until it is put aside.

        Raises:
            Refused: it cannot be opened, or is not what its name says.
            Unavailable: the file is gone, or the disk does not answer.
        """
        path = self._path(entry)
        with self._faults():
            if path.stat().st_size > MAX_WINDOW_BYTES + OVERHEAD_BYTES:
                sealed = b""
            else:
                sealed = path.read_bytes()
        data = unseal(self._key, self._place(entry), sealed)
        if digest_bytes(data) != entry.window:
            raise Refused("the window is not what its name says", where=entry.name)
        return data

    def put_aside(self, entry: Entry) -> None:
        """Keep a window that is of no use out of the way until retention takes it."""
        path = self._path(entry)
        with self._faults(), contextlib.suppress(FileNotFoundError):
            path.replace(path.with_name(path.name.removesuffix(SUFFIX) + DAMAGED))

    def retain(self) -> int:
        """Remove what is beyond the bounds, and what killed writers left; how many went.

        A window from the future (a clock went back) is as old as the bounds allow, no younger.
        """
        now_ms = self._clock.wall_ns() // 1_000_000
        kept = self._all()
        size_bytes, removed = sum(entry.size_bytes for entry in kept), 0
        for place, entry in enumerate(kept):
            crowded = len(kept) - place > self._bounds.files or size_bytes > self._bounds.size_bytes
            if crowded or abs(now_ms - entry.recorded_ms) > self._bounds.age_s * 1e3:
                with self._faults():
                    self._path(entry).unlink(missing_ok=True)
                size_bytes -= entry.size_bytes
                removed += 1
        for folder in self._folders():
            sweep(folder)
            with contextlib.suppress(OSError):
                folder.rmdir()  # only where it is empty
        return removed

    def forget(self) -> int:
        """Remove every window; how many there were."""
        found = self._all()
        for entry in found:
            with self._faults():
                self._path(entry).unlink(missing_ok=True)
        self.retain()
        return len(found)

    def _all(self) -> list[Entry]:
        found = []
        for folder in self._folders():
            bundle = require_digest(f"sha256:{folder.name}")
            for path in _listed(folder):
                match = _NAME.fullmatch(path.name)
                if match is not None:
                    with contextlib.suppress(FileNotFoundError):
                        size_bytes = path.lstat().st_size
                        window = require_digest(f"sha256:{match[2]}")
                        damaged = match[3] is not None
                        found.append(Entry(bundle, int(match[1]), window, size_bytes, damaged))
        return sorted(found, key=lambda entry: (entry.recorded_ms, entry.window, entry.bundle))

    def _folders(self) -> list[Path]:
        return [path for path in _listed(self._folder) if _BUNDLE.fullmatch(path.name)]

    def _path(self, entry: Entry) -> Path:
        name = entry.name.removesuffix(SUFFIX) + DAMAGED if entry.damaged else entry.name
        return self._folder / hex_of(entry.bundle) / name

    def _place(self, entry: Entry) -> str:
        return f"{self._service}/{hex_of(entry.bundle)}/{entry.name}"

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        with disk_faults("the recorded windows", str(self._folder), "Make room on the disk."):
            yield


def _listed(folder: Path) -> list[Path]:
    """What is in a folder; nothing, where it is gone or another's."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return list(folder.iterdir())
    return []
