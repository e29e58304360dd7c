"""A read-only stream of an S3 object that survives a dropped connection."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

from botocore.exceptions import BotoCoreError, ClientError

from infra.objects.content import CHUNK_BYTES
from infra.objects.s3_faults import faults
from infra.objects.s3_place import Place

RESUMES = 3


def open_stream(place: Place) -> tuple[BinaryIO, int]:
    """The object from its beginning, and its size in bytes. Raises what boto3 raises."""
    answer = place.client.get_object(Bucket=place.bucket, Key=place.key)
    raw = _ResumingBody(place, answer["ETag"], answer["Body"])
    return io.BufferedReader(raw, CHUNK_BYTES), answer["ContentLength"]


class _ResumingBody(io.RawIOBase):
    """Reads on from where the connection broke, at most RESUMES times, and never from a changed
    object (If-Match)."""

    def __init__(self, place: Place, tag: str, body: Any) -> None:
        self._place, self._tag, self._body = place, tag, body
        self._position = 0
        self._resumes_left = RESUMES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with faults(self._place.url):
            data = self._read(len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._body.close()
        super().close()

    def _read(self, size: int) -> bytes:
        while True:
            try:
                return bytes(self._body.read(size))
            except (BotoCoreError, ClientError):
                if self._resumes_left == 0:
                    raise
                self._resumes_left -= 1
                self._body.close()
                self._body = self._reopen()

    def _reopen(self) -> Any:
        return self._place.client.get_object(
            Bucket=self._place.bucket,
            Key=self._place.key,
            IfMatch=self._tag,
            Range=f"bytes={self._position}-",
        )["Body"]
