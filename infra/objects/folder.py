"""The object store in a folder: content-addressed, atomic, durable, safe between processes.

    <root>/objects/<first two digits>/<64 hex digits>
    <root>/references/<name, with ! for />      the digest it points to
    <root>/locks/<two hex digits>               one lock for the names that hash there
    <root>/staging/                             what is being written now

An object is staged, flushed, renamed into place, and its folder flushed, so it is whole or absent
whatever dies. What a killed writer left in `staging` is removed when the store is next opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from infra import files
from infra.objects import content
from infra.objects.names import require_reference_name, require_reference_prefix
from validators.contracts.digest import Digest, digest_bytes, hex_of, require_digest
from validators.contracts.errors import ModalgateError, NotFound, Unavailable

_HEX = re.compile(r"[0-9a-f]{64}")
_REMEDY = "Mount or restore the folder, check that this user may write it, and run again."


class FolderStore:
    """The `ObjectStore` port on a local folder, which is created (0700) where it is missing.

    Raises:
        Unavailable: the folder cannot be created or written.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._objects = self._root / "objects"
        self._references = self._root / "references"
        self._locks = self._root / "locks"
        self._staging = self._root / "staging"
        with self._faults():
            for folder in (self._objects, self._references, self._locks, self._staging):
                files.make_private_folder(folder)
            files.sweep(self._staging)

    @property
    def url(self) -> str:
        return self._root.as_uri()

    def put(self, data: bytes) -> Digest:
        digest = digest_bytes(data)
        if self._intact(digest):
            return digest
        with self._faults(), files.stage(self._staging) as staged:
            staged.write(data)
            self._publish(staged, digest)
        return digest

    def put_file(self, path: Path) -> Digest:
        with content.source_file(path) as source:
            digest = content.digest_of(source)
            if self._intact(digest):
                return digest
            source.seek(0)
            with self._faults(), files.stage(self._staging) as staged:
                # Named by what was copied: the source may have changed since it was digested.
                digest = content.copy(source, staged.write)
                self._publish(staged, digest)
        return digest

    def get(self, digest: Digest) -> bytes:
        with self.open(digest) as stream, self._faults():
            content.require_gettable(digest, os.fstat(stream.fileno()).st_size)
            data = stream.read()
        if digest_bytes(data) != digest:
            raise content.damaged(digest, str(self._path(digest)))
        return data

    def open(self, digest: Digest) -> BinaryIO:
        path = self._path(digest)
        try:
            return os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb")
        except FileNotFoundError as error:
            self._require_present()
            raise content.absent(digest, self.url) from error
        except OSError as error:
            raise self._fault(error) from error

    def fetch(self, digest: Digest, destination: Path) -> None:
        with self.open(digest) as stream:
            content.fetch_checked(stream, digest, destination, str(self._path(digest)))

    def contains(self, digest: Digest) -> bool:
        with self._faults():
            if self._path(digest).is_file():
                return True
        self._require_present()
        return False

    def delete(self, digest: Digest) -> None:
        path = self._path(digest)
        self._require_present()
        with self._faults(), contextlib.suppress(FileNotFoundError):
            path.unlink()
            files.flush_folder(path.parent)

    def objects(self) -> Iterator[Digest]:
        self._require_present()
        with self._faults():
            names = sorted(path.name for path in self._objects.glob("??/*"))
        return (Digest(f"sha256:{name}") for name in names if _HEX.fullmatch(name))

    def reference(self, name: str) -> Digest | None:
        path = self._reference_path(name)
        try:
            with path.open("rb") as stream:
                return content.parse_reference(stream.read(content.MAX_REFERENCE_BYTES), name)
        except FileNotFoundError:
            self._require_present()
            return None
        except OSError as error:
            raise self._fault(error) from error

    def reference_set_ns(self, name: str) -> int | None:
        """Wall time at which the reference was last set; None where there is none."""
        with self._faults(), contextlib.suppress(FileNotFoundError):
            return self._reference_path(name).stat().st_mtime_ns
        return None

    def set_reference(self, name: str, to: Digest, *, expected: Digest | None) -> None:
        path = self._reference_path(name)
        require_digest(to)
        with self._faults(), self._locked(name):
            found = self.reference(name)
            if found != expected:
                raise content.moved(name, expected, found)
            with files.stage(self._staging) as staged:
                staged.write(to.encode())
                staged.publish(path)

    def delete_reference(self, name: str) -> None:
        path = self._reference_path(name)
        with self._faults(), self._locked(name), contextlib.suppress(FileNotFoundError):
            path.unlink()
            files.flush_folder(path.parent)

    def references(self, prefix: str = "") -> Iterator[str]:
        require_reference_prefix(prefix)
        self._require_present()
        with self._faults():
            names = sorted(path.name.replace("!", "/") for path in self._references.iterdir())
        return (name for name in names if name.startswith(prefix))

    def _publish(self, staged: files.StagedFile, digest: Digest) -> None:
        path = self._path(digest)
        files.make_private_folder(path.parent)
        staged.publish(path)
        files.flush_folder(self._objects)  # another process may have made its folder just now

    def _intact(self, digest: Digest) -> bool:
        """Whether the object is here and whole; its name is made durable before we say so.

        A damaged object counts as missing, so storing it again heals it.
        """
        try:
            with self.open(digest) as stream, self._faults():
                if content.digest_of(stream) != digest:
                    return False
                files.flush_folder(self._path(digest).parent)
                return True
        except NotFound:
            return False

    def _path(self, digest: Digest) -> Path:
        name = hex_of(require_digest(digest))
        return self._objects / name[:2] / name

    def _reference_path(self, name: str) -> Path:
        return self._references / require_reference_name(name).replace("/", "!")

    def _locked(self, name: str) -> contextlib.AbstractContextManager[None]:
        return files.locked(self._locks / hashlib.sha256(name.encode()).hexdigest()[:2])

    def _require_present(self) -> None:
        """Absent and gone are two things: a store whose folder vanished answers nothing."""
        if not self._objects.is_dir():
            raise Unavailable("the object store's folder is gone", where=self.url, remedy=_REMEDY)

    def _faults(self) -> contextlib.AbstractContextManager[None]:
        return files.disk_faults("the object store", self.url, _REMEDY)

    def _fault(self, error: OSError) -> ModalgateError:
        return files.disk_fault(error, "the object store", self.url, _REMEDY)
