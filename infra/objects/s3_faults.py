"""What an S3 server or the way to it can answer, in our own words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    PartialCredentialsError,
)

from validators.contracts.errors import ModalgateError, Unavailable

_ABSENT = frozenset({"NoSuchKey", "404", "NotFound"})
_CREDENTIALS = frozenset(
    {"AccessDenied", "403", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch",
     "ExpiredToken", "InvalidToken", "401"}
)  # fmt: skip


def code_of(error: ClientError) -> str:
    """The server's error code ("NoSuchKey"), or the HTTP status where it gave none."""
    return str(error.response.get("Error", {}).get("Code", ""))


@contextlib.contextmanager
def faults(
    where: str, *, missing: ModalgateError | None = None, passing: frozenset[str] = frozenset()
) -> Iterator[None]:
    """Translate what boto3 raises. `passing` codes are left to the caller.

    Raises:
        missing: where the object is absent, if given.
        Unavailable: anything else, with what to do.
    """
    try:
        yield
    except ClientError as error:
        code = code_of(error)
        if code in passing:
            raise
        if code in _ABSENT and missing is not None:
            raise missing from error
        raise _refusal(code, where) from error
    except BotoCoreError as error:
        raise _unreachable(error, where) from error


def bucket_missing(where: str) -> Unavailable:
    return Unavailable(
        "the bucket does not exist",
        where=where,
        remedy="Create the bucket, or name another in the store's URL.",
    )


def _refusal(code: str, where: str) -> ModalgateError:
    if code == "NoSuchBucket":
        return bucket_missing(where)
    if code in _CREDENTIALS:
        return Unavailable(
            f"the object store refused our credentials ({code})",
            where=where,
            remedy="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE) to an "
            "identity that may read, write, list and delete under this prefix.",
        )
    return Unavailable(
        f"the object store answered {code or 'an error'}",
        where=where,
        remedy="Look at the store's own log and its free space, then run the command again.",
    )


def _unreachable(error: BotoCoreError, where: str) -> ModalgateError:
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return Unavailable(
            "there are no credentials for the object store",
            where=where,
            remedy="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.",
        )
    return Unavailable(
        f"the object store cannot be reached ({type(error).__name__})",
        where=where,
        remedy="Start the store or correct MODALGATE_S3_ENDPOINT, then run the command again.",
    )
