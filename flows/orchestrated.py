"""Flows of this process under an orchestrator: the configured one, or an embedded one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.orchestrator import embedded_orchestrator

_SETTING = "PREFECT_API_URL"


@contextmanager
def orchestrated(*, told_to_children: bool = False) -> Iterator[None]:
    """While the block lasts. `told_to_children`: runs in processes of their own find it, too.

    Raises:
        Unavailable: the embedded server did not come up.
    """
    with embedded_orchestrator() as url, temporary_settings({PREFECT_API_URL: url} if url else {}):
        if url and told_to_children:
            os.environ[_SETTING] = url
        try:
            yield
        finally:  # what was seen is told before the server goes, or the exit waits for it
            if url and told_to_children:
                os.environ.pop(_SETTING, None)
            APILogWorker.drain_all(timeout=10)
            EventsWorker.drain_all(timeout=10)
