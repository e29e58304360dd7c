"""A materialised bundle on disk: nothing in it is believed before its digest and signature hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import safetensors
import safetensors.numpy

from services.gateway.catalogue import Catalogue, make_catalogue
from validators.contracts.bundle import BUNDLE_FORMAT, Bundle
from validators.contracts.digest import Digest, digest_bytes, digest_chunks, hex_of
from validators.contracts.documents import load
from validators.contracts.errors import NotFound, Refused, TooLarge
from validators.contracts.origin import VectorOrigin
from validators.contracts.ports import Signature, Verifier

MAX_ASSET_BYTES = 1024 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_AGAIN = "Materialise the bundle again from the object store."


@dataclass(frozen=True, slots=True)
class BundleFolder:
    """A checked bundle document and the folder that holds its objects."""

    path: Path
    bundle: Bundle

    def read(self, digest: Digest) -> bytes:
        """The object's bytes, checked. Raises NotFound, Refused, TooLarge."""
        path = self.locate(digest)
        if path.stat().st_size > MAX_ASSET_BYTES:
            raise TooLarge(f"an object of {path.stat().st_size} bytes is too large", where=digest)
        data = path.read_bytes()
        if digest_bytes(data) != digest:
            raise _changed(digest)
        return data

    def file(self, digest: Digest) -> Path:
        """The object's file, its bytes checked without holding them in memory."""
        path = self.locate(digest)
        if digest_chunks(_chunks(path)) != digest:
            raise _changed(digest)
        return path

    def locate(self, digest: Digest) -> Path:
        path = self.path / "objects" / hex_of(digest)
        if not path.is_file():
            raise NotFound("an object of the bundle is missing", where=digest, remedy=_AGAIN)
        return path

    def find_asset(self, name: str) -> bytes | None:
        """The bytes of a named asset, or None where the bundle has none of that name."""
        for asset in self.bundle.assets:
            if asset.name == name:
                return self.read(asset.digest)
        return None

    def read_catalogue(self) -> Catalogue | None:
        """The catalogue, or None where the bundle carries none."""
        vectors, entries = self.find_asset("catalogue.safetensors"), self.find_asset(
            "catalogue.json"
        )  # fmt: skip
        if vectors is None or entries is None:
            return None
        try:
            return make_catalogue(
                safetensors.numpy.load(vectors), json.loads(entries), self._catalogue_origins()
            )
        except (safetensors.SafetensorError, ValueError, RecursionError) as error:
            raise Refused(
                "the catalogue cannot be read", where="catalogue", remedy=_AGAIN
            ) from error

    def _catalogue_origins(self) -> dict[str, VectorOrigin]:
        data = self.find_asset("catalogue-origins.json")
        if data is None:
            raise Refused(
                "the catalogue does not say which encoders its vectors come from",
                where="catalogue-origins.json",
                remedy="Release again with this version.",
            )
        return load(dict[str, VectorOrigin], data, where="catalogue-origins.json")


def open_folder(path: Path, verifier: Verifier, expected: Digest | None = None) -> BundleFolder:
    """The bundle in a folder, after its signature and digest have been checked.

    Raises:
        NotFound: no such folder or no bundle in it.
        Refused: not signed by a trusted key, changed since, another format, or not `expected`.
    """
    document = _read(path / "bundle.json")
    signature = load(Signature, _read(path / "bundle.sig.json"), where="bundle.sig.json")
    verifier.verify(document, signature)
    bundle = load(Bundle, document, where="bundle.json")
    if bundle.format != BUNDLE_FORMAT or bundle.document() != document:
        raise Refused(
            f"a bundle of format {bundle.format} is not served here",
            where=str(path.name),
            remedy="Release again with this version.",
        )
    if expected is not None and bundle.digest != expected:
        raise Refused(
            "the folder holds another bundle than the one asked for",
            where=bundle.digest,
            remedy=f"Materialise {expected}.",
        )
    return BundleFolder(path, bundle)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotFound(
            f"{path.name} cannot be read: {error.strerror}", where=path.parent.name, remedy=_AGAIN
        ) from error


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def _changed(digest: Digest) -> Refused:
    return Refused("an object no longer matches its digest", where=digest, remedy=_AGAIN)
