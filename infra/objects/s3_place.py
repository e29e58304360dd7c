"""Where one object lives in S3, and what is to be stored there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from validators.contracts.digest import Digest

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True, slots=True)
class Place:
    """A key of a bucket, and the client that reaches it. `url` is for messages."""

    client: S3Client
    bucket: str
    key: str
    url: str


@dataclass(frozen=True, slots=True)
class Payload:
    """Bytes to store, as a seekable stream, with the name and size they were measured to have."""

    source: BinaryIO
    digest: Digest
    size_bytes: int
