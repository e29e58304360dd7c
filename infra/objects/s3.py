"""The object store in an S3 bucket, by any server that has conditional writes.

    s3://<bucket>/<prefix>/objects/<64 hex digits>
    s3://<bucket>/<prefix>/references/<name>

An object is written with `If-None-Match: *`, a reference with `If-Match` on the entity tag that
was read, so that of two writers exactly one wins (RFC 9110, section 13.1; "Conditional writes" in
the Amazon S3 user guide). A lost answer makes the client send again and meet its own write: a
reference therefore carries the nonce of its writer, and one who finds his own has won.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from infra.objects import content
from infra.objects.names import require_reference_name, require_reference_prefix
from infra.objects.s3_faults import bucket_missing, faults
from infra.objects.s3_place import Payload, Place
from infra.objects.s3_stream import open_stream
from infra.objects.s3_upload import abandon_uploads, checksum, is_whole, upload
from validators.contracts.digest import Digest, digest_bytes, hex_of, require_digest
from validators.contracts.errors import BadInput, Conflict, NotFound, Unavailable
from validators.contracts.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import PutObjectRequestTypeDef

CONNECT_TIMEOUT_S = 5
READ_TIMEOUT_S = 60
ATTEMPTS = 4

_LOST_RACE = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412", "409"})


class S3Store:
    """The `ObjectStore` port on one prefix of a bucket. Credentials: boto3's own chain only.

    Nothing is sent before the first use. `endpoint_url` names a server other than Amazon's.

    Raises:
        BadInput: the endpoint is no URL.
    """

    def __init__(self, bucket: str, prefix: str = "", *, endpoint_url: str | None = None) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._bucket_seen = False
        with faults(self.url):
            self._client = _client(endpoint_url)

    @property
    def url(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}"

    def put(self, data: bytes) -> Digest:
        digest = digest_bytes(data)
        self._store(BytesIO(data), digest, len(data))
        return digest

    def put_file(self, path: Path) -> Digest:
        with content.source_file(path) as source:
            digest = content.digest_of(source)
            size = source.tell()
            source.seek(0)
            self._store(source, digest, size)
        return digest

    def get(self, digest: Digest) -> bytes:
        stream, size = self._open(digest)
        with stream:
            content.require_gettable(digest, size)
            data = stream.read()
        if digest_bytes(data) != digest:
            raise content.damaged(digest, self.url)
        return data

    def open(self, digest: Digest) -> BinaryIO:
        return self._open(digest)[0]

    def fetch(self, digest: Digest, destination: Path) -> None:
        with self.open(digest) as stream:
            content.fetch_checked(stream, digest, destination, self.url)

    def contains(self, digest: Digest) -> bool:
        try:
            with faults(self.url, missing=content.absent(digest, self.url)):
                self._client.head_object(Bucket=self._bucket, Key=self._key(digest))
        except NotFound:
            self._require_bucket()
            return False
        return True

    def delete(self, digest: Digest) -> None:
        with faults(self.url):
            self._client.delete_object(Bucket=self._bucket, Key=self._key(digest))

    def objects(self) -> Iterator[Digest]:
        for name in self._names("objects/"):
            try:
                yield require_digest(f"sha256:{name}")
            except BadInput:  # somebody else's file under our prefix
                continue

    def reference(self, name: str) -> Digest | None:
        return self._read_reference(name)[0]

    def set_reference(self, name: str, to: Digest, *, expected: Digest | None) -> None:
        require_digest(to)
        nonce = secrets.token_hex(16)
        for _ in range(ATTEMPTS):
            found, tag, writer = self._read_reference(name)
            if writer == nonce:
                return  # an earlier sending of ours had arrived: only its answer was lost
            if found != expected:
                raise content.moved(name, expected, found)
            try:
                with faults(self.url, passing=_LOST_RACE):
                    self._write_reference(name, to, tag, nonce)
                return
            except ClientError:  # lost the race, or the answer: look again
                continue
        raise Conflict(
            "the reference is being written by somebody else",
            where=name,
            remedy="Read it again and decide anew.",
        )

    def delete_reference(self, name: str) -> None:
        with faults(self.url):
            self._client.delete_object(Bucket=self._bucket, Key=self._reference_key(name))

    def references(self, prefix: str = "") -> Iterator[str]:
        return self._names("references/", require_reference_prefix(prefix))

    def abandon_uploads(self, older_than_s: float, clock: Clock) -> int:
        """End the uploads that killed writers left, which are invisible but paid for.

        S3 does not say whether a writer lives: choose an age that no upload reaches (a day), or
        give the bucket a life-cycle rule with AbortIncompleteMultipartUpload.

        Returns: how many were ended.
        """
        with faults(self.url):
            before_ns = clock.wall_ns() - round(older_than_s * 1e9)
            return abandon_uploads(self._client, self._bucket, f"{self._prefix}objects/", before_ns)

    def _open(self, digest: Digest) -> tuple[BinaryIO, int]:
        with faults(self.url, missing=content.absent(digest, self.url)):
            return open_stream(self._place(digest))

    def _store(self, source: BinaryIO, digest: Digest, size_bytes: int) -> None:
        """Write what is missing, replace what is damaged, and leave what is whole."""
        place, payload = self._place(digest), Payload(source, digest, size_bytes)
        for _ in range(ATTEMPTS):
            with faults(self.url):
                found = is_whole(place, payload)
            if found:
                return
            source.seek(0)
            try:
                with faults(self.url, passing=_LOST_RACE):
                    upload(place, payload, replace=found is False)
                return
            except ClientError:  # somebody else is storing the same object: see what came of it
                continue
        raise Unavailable(
            "the object store keeps refusing the object as being written by somebody else",
            where=digest,
            remedy="Run the command again when the other writer is done.",
        )

    def _read_reference(self, name: str) -> tuple[Digest | None, str | None, str | None]:
        """What the reference points to, its entity tag, and the nonce of its writer."""
        key = self._reference_key(name)
        missing = NotFound("there is no such reference", where=name)
        try:
            with faults(self.url, missing=missing):
                answer = self._client.get_object(Bucket=self._bucket, Key=key)
                data = answer["Body"].read(content.MAX_REFERENCE_BYTES)
        except NotFound:
            return None, None, None
        nonce = answer.get("Metadata", {}).get("writer")
        return content.parse_reference(data, name), answer["ETag"], nonce

    def _write_reference(self, name: str, to: Digest, tag: str | None, nonce: str) -> None:
        body = to.encode()
        request: PutObjectRequestTypeDef = {
            "Bucket": self._bucket,
            "Key": self._reference_key(name),
            "Body": body,
            "Metadata": {"writer": nonce},
            "ChecksumSHA256": checksum(digest_bytes(body)),
        }
        if tag is None:
            request["IfNoneMatch"] = "*"
        else:
            request["IfMatch"] = tag
        self._client.put_object(**request)

    def _names(self, folder: str, prefix: str = "") -> Iterator[str]:
        """Key names below a folder of ours, a page at a time."""
        start = f"{self._prefix}{folder}"
        pages = iter(
            self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=start + prefix
            )
        )
        while True:
            with faults(self.url):
                page = next(pages, None)
            if page is None:
                return
            for item in page.get("Contents", []):
                yield item["Key"].removeprefix(start)

    def _require_bucket(self) -> None:
        """A HEAD says 404 for a missing object and for a missing bucket: ask once which."""
        if self._bucket_seen:
            return
        with faults(self.url, missing=bucket_missing(self.url)):
            self._client.head_bucket(Bucket=self._bucket)
        self._bucket_seen = True

    def _place(self, digest: Digest) -> Place:
        return Place(self._client, self._bucket, self._key(digest), self.url)

    def _key(self, digest: Digest) -> str:
        return f"{self._prefix}objects/{hex_of(require_digest(digest))}"

    def _reference_key(self, name: str) -> str:
        return f"{self._prefix}references/{require_reference_name(name)}"


def _client(endpoint_url: str | None) -> S3Client:
    config = Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        s3={"addressing_style": "path" if endpoint_url else "auto"},
        # Every write carries its own SHA-256, and every read is digested here.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    try:
        # A session of its own: the default one keeps the first credentials it ever saw.
        return boto3.Session().client("s3", endpoint_url=endpoint_url, config=config)
    except ValueError as error:
        raise BadInput(
            "the endpoint of the object store is not a URL",
            where="MODALGATE_S3_ENDPOINT",
            remedy="Write it as http://host:port or https://host.",
        ) from error
