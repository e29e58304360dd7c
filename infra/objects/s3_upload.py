"""Writing one object to S3: in one piece or in parts, with SHA-256 checksums that the server keeps.

Memory: one part at a time. A failed upload is ended, so that no invisible parts stay.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from infra.objects.content import digest_of
from infra.objects.s3_faults import code_of
from infra.objects.s3_place import Payload, Place
from infra.objects.s3_stream import open_stream
from validators.contracts.digest import Digest, digest_bytes, hex_of
from validators.contracts.errors import BadInput

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import (
        CompletedPartTypeDef,
        CompleteMultipartUploadRequestTypeDef,
        PutObjectRequestTypeDef,
    )

PART_BYTES = 16 << 20
MAX_PARTS = 10_000  # S3's own limit


def checksum(digest: Digest) -> str:
    """The digest as S3 writes it: base64."""
    return base64.b64encode(bytes.fromhex(hex_of(digest))).decode("ascii")


def part_bytes(size_bytes: int) -> int:
    """The size of a part, so that the object fits in MAX_PARTS of them."""
    return max(PART_BYTES, -(-size_bytes // MAX_PARTS))


def upload(place: Place, payload: Payload, *, replace: bool) -> None:
    """Write an object, unless one is there and `replace` is False. Raises what boto3 raises.

    Raises:
        BadInput: the source no longer has the bytes that were digested.
    """
    if payload.size_bytes > PART_BYTES:
        _upload_parts(place, payload, replace=replace)
        return
    data = payload.source.read(payload.size_bytes + 1)
    if digest_bytes(data) != payload.digest:
        raise _changed(payload.digest)
    request: PutObjectRequestTypeDef = {
        "Bucket": place.bucket,
        "Key": place.key,
        "Body": data,
        "ChecksumSHA256": checksum(payload.digest),
    }
    if not replace:
        request["IfNoneMatch"] = "*"
    place.client.put_object(**request)


def is_whole(place: Place, payload: Payload) -> bool | None:
    """None where the object is absent, False where what is stored is not the payload.

    Judged by the checksum that the server keeps; where it keeps none, by reading the object.
    """
    try:
        head = place.client.head_object(Bucket=place.bucket, Key=place.key, ChecksumMode="ENABLED")
    except ClientError as error:
        if code_of(error) in {"404", "NoSuchKey", "NotFound"}:
            return None
        raise
    if head["ContentLength"] != payload.size_bytes:
        return False
    kept = head.get("ChecksumSHA256")
    if kept is None:
        with open_stream(place)[0] as stream:
            return digest_of(stream) == payload.digest
    if "-" not in kept:
        return kept == checksum(payload.digest)
    return kept == _checksum_of_parts(payload)


def abandon_uploads(client: S3Client, bucket: str, prefix: str, before_ns: int) -> int:
    """End every unfinished upload under the prefix that began before a wall time; how many."""
    ended = 0
    pages = client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix)
    for page in pages:
        for item in page.get("Uploads", []):
            if item["Initiated"].timestamp() * 1e9 <= before_ns:
                client.abort_multipart_upload(
                    Bucket=bucket, Key=item["Key"], UploadId=item["UploadId"]
                )
                ended += 1
    return ended


def _upload_parts(place: Place, payload: Payload, *, replace: bool) -> None:
    client, bucket, key = place.client, place.bucket, place.key
    begun = client.create_multipart_upload(Bucket=bucket, Key=key, ChecksumAlgorithm="SHA256")
    upload_id = begun["UploadId"]
    try:
        request: CompleteMultipartUploadRequestTypeDef = {
            "Bucket": bucket,
            "Key": key,
            "UploadId": upload_id,
            "MultipartUpload": {"Parts": _send_parts(place, payload, upload_id)},
        }
        if not replace:
            request["IfNoneMatch"] = "*"
        client.complete_multipart_upload(**request)
    except BaseException:  # an interrupt too must not leave parts behind
        with contextlib.suppress(ClientError, BotoCoreError):
            client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id)
        raise


def _send_parts(place: Place, payload: Payload, upload_id: str) -> list[CompletedPartTypeDef]:
    hasher = hashlib.sha256()
    sent: list[CompletedPartTypeDef] = []
    for number, data in enumerate(_parts(payload), start=1):
        hasher.update(data)
        sha256 = checksum(digest_bytes(data))
        answer = place.client.upload_part(
            Bucket=place.bucket,
            Key=place.key,
            UploadId=upload_id,
            PartNumber=number,
            Body=data,
            ChecksumSHA256=sha256,
        )
        sent.append({"PartNumber": number, "ETag": answer["ETag"], "ChecksumSHA256": sha256})
    if hasher.hexdigest() != hex_of(payload.digest):
        raise _changed(payload.digest)
    return sent


def _parts(payload: Payload) -> Iterator[bytes]:
    size = part_bytes(payload.size_bytes)
    while data := payload.source.read(size):
        yield data


def _checksum_of_parts(payload: Payload) -> str:
    """S3's composite checksum: the digest of the parts' digests, and their number."""
    payload.source.seek(0)
    digests = [hashlib.sha256(data).digest() for data in _parts(payload)]
    return f"{checksum(digest_bytes(b''.join(digests)))}-{len(digests)}"


def _changed(digest: Digest) -> BadInput:
    return BadInput(
        "the file changed while it was being stored",
        where=digest,
        remedy="Store it when its writer is done.",
    )
