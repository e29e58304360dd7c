"""An object store by its URL."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from infra.objects.folder import FolderStore
from infra.objects.s3 import S3Store
from validators.contracts.errors import BadInput
from validators.contracts.ports import ObjectStore

ENDPOINT_VARIABLE = "MODALGATE_S3_ENDPOINT"


def open_store(url: str) -> ObjectStore:
    """The store at `file:///folder` or `s3://bucket/prefix`.

    The S3 endpoint comes from MODALGATE_S3_ENDPOINT (unset: Amazon's), credentials from boto3's
    own chain.

    Raises:
        BadInput: another kind of URL.  Unavailable: the folder cannot be made.
    """
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and parts.path:
        return FolderStore(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc and "@" not in parts.netloc:
        endpoint = os.environ.get(ENDPOINT_VARIABLE) or None
        return S3Store(parts.netloc, parts.path, endpoint_url=endpoint)
    raise BadInput(
        f"a store with scheme {parts.scheme[:20]!r} cannot be opened",
        where="the object store's URL",
        remedy="Write it as file:///folder or s3://bucket/prefix.",
    )
