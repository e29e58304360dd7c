"""The build queue in a folder: one file a request, safe between threads and processes.

    <folder>/lock               held, briefly, by whoever changes the queue
    <folder>/<key>.json         a request and what has become of it; replaced whole, or not at all
    <folder>/<key>.lock         held by the builder that took it, until it settles it or dies

The kernel frees a builder's lock with its process, however that died: a request that says BUILDING
and whose lock is free waits again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from infra import files
from validators.contracts.builds import BuildState, QueuedBuild, ShapeRequest
from validators.contracts.digest import Digest, canonical_json, hex_of
from validators.contracts.documents import load
from validators.contracts.errors import BadInput, Conflict, Overloaded, Refused
from validators.contracts.ports import Clock

MAX_WAITING = 256
MAX_TRIES = 3
KEPT_SETTLED = 4096
"""Requests that are DONE or FAILED and still known; the oldest are forgotten beyond."""

_SETTLED = frozenset({BuildState.DONE, BuildState.FAILED})
_NAME = re.compile(r"[0-9a-f]{64}\.json")
_MAX_BYTES = 64 * 1024
_RETRY_AFTER_S = 60.0
_REMEDY = "Check that this user may write the folder, and try again."


class FolderQueue:
    """The `BuildQueue` port on a local folder, which is created (0700) where it is missing.

    Raises:
        Unavailable: the folder cannot be created or written.
    """

    def __init__(self, folder: Path, clock: Clock, *, max_waiting: int = MAX_WAITING) -> None:
        self._folder = folder.absolute()
        self._clock = clock
        self._max_waiting = max_waiting
        self._held: dict[Digest, int] = {}
        self._guard = threading.Lock()
        with self._faults():
            files.make_private_folder(self._folder)
            files.sweep(self._folder)

    def file(self, request: ShapeRequest) -> bool:
        if self._read(self._path(request.key)) is not None:  # the common case takes no lock
            return False
        with self._changing():
            if self._read(self._path(request.key)) is not None:
                return False
            known = self._known()
            self._require_room(known)
            self._write(QueuedBuild(request, BuildState.WAITING, self._clock.wall_ns() // 10**6))
            self._forget_oldest(known)
        return True

    def builds(self, service: str | None = None) -> list[QueuedBuild]:
        with self._changing():
            known = [self._as_it_is(build) for build in self._known()]
        return [build for build in known if service in (None, build.request.service)]

    def take(self) -> QueuedBuild | None:
        with self._changing():
            for build in self._known():
                if build.state in (BuildState.WAITING, BuildState.BUILDING):
                    taken = self._try(build)
                    if taken is not None:
                        return taken
        return None

    def settle(
        self, request: ShapeRequest, state: BuildState, message: str = "", *, tried: bool = True
    ) -> None:
        """DONE, FAILED, or WAITING again for another try; FAILED when there is no try left.

        Raises:
            BadInput: BUILDING is not a result.  Conflict: this queue did not take the request.
            Unavailable: the disk is full; the request waits again.
        """
        if state is BuildState.BUILDING:
            raise BadInput("a build cannot be settled as building", where=request.key)
        key = request.key
        with self._guard:
            handle = self._held.pop(key, None)
        if handle is None:
            raise Conflict(
                "a build can be settled only by the builder that took it",
                where=key,
                remedy="Take the request first.",
            )
        try:
            with self._changing():
                build = self._read(self._path(key))
                if build is None:  # forgotten meanwhile: nobody waits for it
                    return
                tries = build.tries if tried else build.tries - 1
                if state is BuildState.WAITING and tries >= MAX_TRIES:
                    state = BuildState.FAILED
                self._write(replace(build, state=state, message=message, tries=tries))
        finally:
            os.close(handle)

    def reopen(self, request: ShapeRequest) -> bool:
        with self._changing():
            build = self._read(self._path(request.key))
            if build is None or build.state not in _SETTLED:
                return False
            self._write(replace(build, state=BuildState.WAITING, tries=0))
        return True

    def forget(self, request: ShapeRequest) -> None:
        """Remove a request that nobody builds; what is unknown is fine.

        Raises:
            Conflict: it is being built.
        """
        with self._changing():
            handle = self._lock(request.key)
            if handle is None:
                raise Conflict(
                    "the request is being built",
                    where=request.key,
                    remedy="Wait for the build to end.",
                )
            try:
                self._remove(request.key)
            finally:
                os.close(handle)

    def _try(self, build: QueuedBuild) -> QueuedBuild | None:
        """This request as taken by us, or None where another builds it or no try is left."""
        key = build.request.key
        handle = self._lock(key)
        if handle is None:
            return None
        try:
            if build.tries >= MAX_TRIES:
                reason = build.message or f"its builder died {build.tries} times"
                self._write(replace(build, state=BuildState.FAILED, message=reason))
                os.close(handle)
                return None
            taken = replace(build, state=BuildState.BUILDING, tries=build.tries + 1)
            self._write(taken)
        except BaseException:
            os.close(handle)
            raise
        with self._guard:
            self._held[key] = handle
        return taken

    def _as_it_is(self, build: QueuedBuild) -> QueuedBuild:
        """A build whose builder died waits again, whatever its file still says."""
        if build.state is not BuildState.BUILDING:
            return build
        handle = self._lock(build.request.key)
        if handle is None:
            return build
        os.close(handle)
        return replace(build, state=BuildState.WAITING)

    def _require_room(self, known: list[QueuedBuild]) -> None:
        waiting = sum(build.state is BuildState.WAITING for build in known)
        if waiting >= self._max_waiting:
            raise Overloaded(
                f"{waiting} build requests wait already",
                where=str(self._folder),
                remedy="Build them: modalgate engines build.",
                retry_after_s=_RETRY_AFTER_S,
            )

    def _forget_oldest(self, known: list[QueuedBuild]) -> None:
        settled = [build for build in known if build.state in _SETTLED]
        for build in settled[: max(0, len(settled) - KEPT_SETTLED)]:
            self._remove(build.request.key)

    def _known(self) -> list[QueuedBuild]:
        """Every readable request, oldest first."""
        with self._faults():
            paths = [path for path in self._folder.iterdir() if _NAME.fullmatch(path.name)]
        found = [build for path in paths if (build := self._read(path)) is not None]
        return sorted(found, key=lambda build: (build.filed_ms, build.request.key))

    def _read(self, path: Path) -> QueuedBuild | None:
        """None where there is no such file, or it is not one of ours: filing replaces it."""
        with self._faults():
            try:
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:
                return None
            with os.fdopen(handle, "rb") as stream:
                data = stream.read(_MAX_BYTES)
        try:
            build = load(QueuedBuild, data, where=path.name)
        except Refused:
            return None
        return build if self._path(build.request.key) == path else None

    def _write(self, build: QueuedBuild) -> None:
        with self._faults():
            files.write_atomically(self._path(build.request.key), canonical_json(build))

    def _remove(self, key: Digest) -> None:
        with self._faults():
            self._path(key).unlink(missing_ok=True)
            self._lock_path(key).unlink(missing_ok=True)
            files.flush_folder(self._folder)

    def _lock(self, key: Digest) -> int | None:
        """The builder's lock of a request, or None where a living builder has it.

        Asked for only under the queue's lock, so that a removed lock file is never waited for.
        """
        with self._faults():
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(self._lock_path(key), flags, files.PRIVATE_FILE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return handle

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        with self._faults(), files.locked(self._folder / "lock"):
            yield

    def _path(self, key: Digest) -> Path:
        return self._folder / f"{hex_of(key)}.json"

    def _lock_path(self, key: Digest) -> Path:
        return self._folder / f"{hex_of(key)}.lock"

    def _faults(self) -> contextlib.AbstractContextManager[None]:
        return files.disk_faults("the build queue", str(self._folder), _REMEDY)
