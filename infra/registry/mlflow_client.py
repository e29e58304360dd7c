"""The way to an MLflow server or database, and its refusals in our own words.

MLflow retries a dead database for minutes and an unreachable server for longer than a person
waits, so whether anybody listens is asked first, with a short limit.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import re
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from infra import files
from validators.contracts.errors import (
    BadInput,
    Conflict,
    ModalgateError,
    NotFound,
    Unavailable,
)

CONNECT_TIMEOUT_S = 5.0

_ARTIFACT_ERRORS = (Boto3Error, BotoCoreError, ClientError)  # artifacts may lie in S3
_DEFAULT_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}
_REMEDY = (
    "Start the MLflow server or its database, or correct the tracking URI, then run the command "
    "again."
)
_USER_INFO = re.compile(r"//[^@/]*@")


def public_uri(uri: str) -> str:
    """The URI without its user name and password."""
    return _USER_INFO.sub("//", uri)


def connect(tracking_uri: str, lock: Path) -> MlflowClient:
    """A client that has been answered. The lock keeps two processes from making one database.

    Raises:
        BadInput: a URI of another kind.  Unavailable: nobody answers.
    """
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.ERROR)
    where = public_uri(tracking_uri)
    with faults(where):
        _probe(tracking_uri)
        with files.locked(lock):
            client = MlflowClient(tracking_uri, tracking_uri)
            client.search_registered_models(max_results=1)
    return client


@contextlib.contextmanager
def faults(where: str) -> Iterator[None]:
    """Translate what MLflow and the ways below it raise."""
    try:
        yield
    except ModalgateError:
        raise
    except MlflowException as error:
        raise _translate(error, where) from error
    except (SQLAlchemyError, sqlite3.Error, OSError, *_ARTIFACT_ERRORS) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise files.disk_fault(error, "the model registry", where, _REMEDY) from error
        raise Unavailable(
            f"the model registry cannot be reached ({type(error).__name__})",
            where=where,
            remedy=_REMEDY,
        ) from error


def _translate(error: MlflowException, where: str) -> ModalgateError:
    code = str(error.error_code)
    if code == "RESOURCE_DOES_NOT_EXIST":
        return NotFound(
            "the model registry has no such entry", where=where, remedy="List what is registered."
        )
    if code == "RESOURCE_ALREADY_EXISTS":
        return Conflict("somebody else made it first", where=where, remedy="Run the command again.")
    if code == "INVALID_PARAMETER_VALUE":
        text = str(error.message).splitlines()[0][:200]
        return BadInput(f"the model registry refused a value: {text}", where=where)
    if code in {"PERMISSION_DENIED", "UNAUTHENTICATED", "CUSTOMER_UNAUTHORIZED"}:
        return Unavailable(
            "the model registry refused our credentials",
            where=where,
            remedy="Set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and _PASSWORD.",
        )
    return Unavailable(f"the model registry failed ({code})", where=where, remedy=_REMEDY)


def _probe(tracking_uri: str) -> None:
    """Raise OSError or sqlite3.Error where nobody answers, BadInput where it is no such URI."""
    scheme = urlsplit(tracking_uri).scheme.split("+")[0]
    if scheme in {"http", "https"}:
        parts = urlsplit(tracking_uri)
        host, port = parts.hostname, parts.port
    elif scheme in {"sqlite", "postgresql", "mysql", "mssql"}:
        try:
            url = make_url(tracking_uri)
        except ArgumentError as error:
            raise _no_uri() from error
        if scheme == "sqlite":
            _probe_file(url.database)
            return
        host, port = url.host, url.port
    else:
        raise _no_uri()
    if not host:
        raise _no_uri()
    with socket.create_connection((host, port or _DEFAULT_PORTS[scheme]), CONNECT_TIMEOUT_S):
        return


def _probe_file(database: str | None) -> None:
    if not database or database == ":memory:":
        raise _no_uri()
    path = Path(database)
    files.make_private_folder(path.parent.absolute())
    with contextlib.closing(sqlite3.connect(path, timeout=CONNECT_TIMEOUT_S)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _no_uri() -> BadInput:
    return BadInput(
        "the tracking URI names no server and no database",
        where="the registry's tracking URI",
        remedy="Write it as sqlite:////folder/mlflow.db, postgresql://host/name or https://host.",
    )
