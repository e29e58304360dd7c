from __future__ import annotations

import errno
import sqlite3

import pytest
from botocore.exceptions import EndpointConnectionError
from mlflow.exceptions import MlflowException
from mlflow.protos import databricks_pb2 as codes
from sqlalchemy.exc import OperationalError

from infra.registry.mlflow_client import faults, public_uri
from validators.contracts.errors import (
    BadInput,
    Conflict,
    ModalgateError,
    NotFound,
    Unavailable,
)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (MlflowException("x", codes.RESOURCE_DOES_NOT_EXIST), NotFound, "no such entry"),
        (MlflowException("x", codes.RESOURCE_ALREADY_EXISTS), Conflict, "made it first"),
        (MlflowException("bad name", codes.INVALID_PARAMETER_VALUE), BadInput, "bad name"),
        (MlflowException("x", codes.PERMISSION_DENIED), Unavailable, "MLFLOW_TRACKING_TOKEN"),
        (MlflowException("x", codes.UNAUTHENTICATED), Unavailable, "MLFLOW_TRACKING_TOKEN"),
        (MlflowException("x", codes.TEMPORARILY_UNAVAILABLE), Unavailable, "Start the MLflow"),
        (MlflowException("x", codes.INTERNAL_ERROR), Unavailable, "INTERNAL_ERROR"),
        (OperationalError("select 1", {}, Exception("x")), Unavailable, "Start the MLflow"),
        (sqlite3.DatabaseError("x"), Unavailable, "Start the MLflow"),
        (ConnectionRefusedError("x"), Unavailable, "Start the MLflow"),
        (OSError(errno.ENOSPC, "x"), Unavailable, "Free space"),
        (EndpointConnectionError(endpoint_url="http://x"), Unavailable, "Start the MLflow"),
        (BadInput("our own"), BadInput, "our own"),
    ],
)
def test_every_refusal_has_words_of_our_own(
    error: Exception, kind: type[ModalgateError], words: str
) -> None:
    with pytest.raises(kind, match=words), faults("here"):
        raise error


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://host/db"),
        ("https://host:5000", "https://host:5000"),
        ("sqlite:////folder/a@b.db", "sqlite:////folder/a@b.db"),
    ],
)
def test_a_uri_is_shown_without_its_password(uri: str, shown: str) -> None:
    assert public_uri(uri) == shown
