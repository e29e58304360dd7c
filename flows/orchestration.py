"""Prefect, as this platform starts it: an embedded server unless one is configured.

`prepare` must run before the first `import prefect` of a process: settings are read at import.
"""

from __future__ import annotations

import logging
import os

from flows.home import Home

_EMBEDDED = {
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
    # The default of 20 s fails on a busy two-core machine at first start (migrations).
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "PREFECT_CLI_PROMPT": "false",
}
_ALWAYS = {"DO_NOT_TRACK": "1"}
_CHATTY = (
    "presidio-analyzer",
    "great_expectations",
    "great_expectations.data_context.types.base",
    "alembic",
    "mlflow",
)
"""Libraries that report their own set-up; their errors still come through."""


def prepare(home: Home) -> None:
    """Set Prefect's environment for this process; what the user set stays."""
    for name, value in _ALWAYS.items():
        os.environ.setdefault(name, value)
    for name in _CHATTY:
        logger = logging.getLogger(name)
        logger.setLevel(logging.ERROR)
        logger.addFilter(_is_error)  # a level that the library sets at import does not undo this
    if os.environ.get("PREFECT_API_URL"):
        return
    os.environ.setdefault("PREFECT_HOME", str(home.folder("prefect")))
    for name, value in _EMBEDDED.items():
        os.environ.setdefault(name, value)


def _is_error(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.ERROR
