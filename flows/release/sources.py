"""Where a release reads from, each source with the digest that says whether it changed.

A factory is code: its digest is that of its module's file and of the installed distributions it may
draw on, so an upgraded package is a changed source. A factory `make` that draws on more than that
has a function `make_version` beside it, whose text is part of the digest. A folder's digest is that
of all its bytes, an ONNX file's that of its own and of the data files it names. A torch factory may
lie beside the pipeline file: what else lies there as Python is part of its digest.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from services.engines.export.onnx_source import external_files
from validators.contracts.digest import Digest, digest_bytes, digest_chunks, digest_value
from validators.contracts.errors import BadInput, NotFound, TooLarge
from validators.contracts.pipeline import DataSource, EncoderEntry, SourceKind

MAX_FILES = 200_000
MAX_ASSET_BYTES = 256 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024

_IMPORTING = threading.Lock()


def data_digest(source: DataSource, base: Path) -> Digest:
    """Digest of a data source, without ingesting it."""
    if source.kind == "factory":
        return digest_value("data-source", {"factory": factory_digest(source.location)})
    return digest_value("data-source", {"folder": folder_digest(base / source.location)})


def encoder_digest(entry: EncoderEntry, base: Path) -> Digest:
    """Digest of an encoder's source, without exporting it."""
    if entry.source.kind is SourceKind.TORCH:
        return factory_digest(entry.source.location, base)
    path = base / entry.source.location
    data = [file for file in external_files(path) if file.is_file()]
    if not data:
        return file_digest(path)
    return digest_value("onnx-source", [file_digest(file) for file in (path, *data)])


def factory_digest(location: str, base: Path | None = None) -> Digest:
    """Digest of `package.module:callable`: its file, the installed packages, its version.

    `base` is a folder whose modules come before the installed ones, as in the child that runs them.
    """
    module, _, name = location.partition(":")
    beside = _files_beside(module, base) if base is not None and name else []
    with _first_of(base if beside else None):
        facts: dict[str, object] = {
            "location": location,
            "file": file_digest(_module_file(location)),
            "packages": _installed(),
            "version": _version(module, name),
        }
    if base is not None and beside:
        facts["beside"] = {str(path.relative_to(base)): file_digest(path) for path in beside}
    return digest_value("factory", facts)


def load_factory(location: str) -> Callable[..., object]:
    """The callable that `package.module:callable` names; it runs with this process's rights."""
    module, _, name = location.partition(":")
    _module_file(location)
    found = getattr(importlib.import_module(module), name, None)
    if not callable(found):
        raise NotFound(
            f"{module} has no callable {name!r}",
            where=location,
            remedy="Name a function as package.module:function.",
        )
    return found  # type: ignore[no-any-return]


def read_asset(reference: str, base: Path) -> bytes:
    """The bytes of a file beside the pipeline, or of `package:relative/path` in a package."""
    package, colon, relative = reference.partition(":")
    path = _package_file(package, relative) if colon else (base / reference)
    try:
        if path.stat().st_size > MAX_ASSET_BYTES:
            raise TooLarge(f"an asset may have {MAX_ASSET_BYTES} bytes at most", where=reference)
        return path.read_bytes()
    except OSError as error:
        raise NotFound(
            f"the asset cannot be read: {error.strerror}",
            where=reference,
            remedy="Give a file relative to the pipeline file, or package:relative/path.",
        ) from error


def file_digest(path: Path) -> Digest:
    try:
        with path.open("rb") as stream:
            return digest_chunks(iter(lambda: stream.read(_CHUNK_BYTES), b""))
    except OSError as error:
        raise NotFound(
            f"the file cannot be read: {error.strerror}",
            where=str(path),
            remedy="Give a file relative to the pipeline file.",
        ) from error


def folder_digest(folder: Path) -> Digest:
    """Digest of every regular file below a folder, by relative path."""
    if not folder.is_dir():
        raise NotFound(
            "the data set's folder does not exist",
            where=str(folder),
            remedy="Give a folder relative to the pipeline file.",
        )
    files: dict[str, Digest] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            files[str(path.relative_to(folder))] = file_digest(path)
            if len(files) > MAX_FILES:
                raise TooLarge(f"a data set may have {MAX_FILES} files at most", where=str(folder))
    return digest_value("folder", files)


def _version(module: str, name: str) -> str:
    version = getattr(importlib.import_module(module), f"{name}_version", None)
    return str(version()) if callable(version) else ""


def _files_beside(module: str, base: Path) -> list[Path]:
    """The Python files that a module in this folder may draw on; none where it lies elsewhere."""
    top = module.partition(".")[0]
    own = [path for path in (base / f"{top}.py", base / top / "__init__.py") if path.is_file()]
    known = sys.modules.get(top)
    origin = getattr(known, "__file__", None)
    if not own or (origin is not None and Path(origin).resolve() in [p.resolve() for p in own]):
        return []
    return sorted({*base.glob("*.py"), *(base / top).rglob("*.py")})


@contextmanager
def _first_of(base: Path | None) -> Iterator[None]:
    """This folder's modules first, and forgotten again: another pipeline's have the same names."""
    if base is None:
        yield
        return
    with _IMPORTING:
        known, folder = set(sys.modules), base.resolve()
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.path.remove(str(folder))
            for name in set(sys.modules) - known:
                origin = getattr(sys.modules[name], "__file__", None)
                if origin is not None and Path(origin).is_relative_to(folder):
                    del sys.modules[name]


def _module_file(location: str) -> Path:
    module, colon, name = location.partition(":")
    try:
        spec = importlib.util.find_spec(module) if colon and name else None
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        raise NotFound(
            f"there is no module for {location!r}",
            where=location,
            remedy="Install the package, or name a function as package.module:function.",
        )
    return Path(spec.origin)


def _package_file(package: str, relative: str) -> Path:
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise BadInput(
            f"there is no package {package!r}",
            where=f"{package}:{relative}",
            remedy="Install it: pip install 'modalgate[reference]' for the reference service.",
        )
    root = Path(folders[0]).resolve()
    path = (root / relative).resolve()
    if not path.is_relative_to(root):
        raise BadInput("an asset may not lie outside its package", where=f"{package}:{relative}")
    return path


@cache
def _installed() -> Digest:
    names = sorted(
        f"{item.metadata['Name']}=={item.version}" for item in importlib.metadata.distributions()
    )
    return digest_bytes("\n".join(names).encode())
