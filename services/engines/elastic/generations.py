"""One engine after another in one place: each stays open until the last call on it has left."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from services.engines.elastic.plan import ServingPlan
from validators.contracts.errors import Unavailable
from validators.contracts.ports import RunningEngine


@dataclass(slots=True, eq=False)
class Generation:
    """An engine, how requests are run on it, and the calls that are on it now."""

    engine: RunningEngine
    plan: ServingPlan
    calls: int = 0
    leaving: bool = False


class Generations:
    """The present engine. The lock is held to count only, never while an engine runs or closes."""

    def __init__(self, first: Generation) -> None:
        self._lock = threading.Lock()
        self._present = first

    @property
    def present(self) -> Generation:
        return self._present

    @contextlib.contextmanager
    def entered(self) -> Iterator[Generation]:
        """Hold the present engine open for one call. Raises Unavailable once it was closed."""
        with self._lock:
            generation = self._present
            if generation.leaving:
                raise Unavailable(
                    "the engine has been closed", where=generation.engine.manifest.spec.encoder
                )
            generation.calls += 1
        try:
            yield generation
        finally:
            with self._lock:
                generation.calls -= 1
                last = generation.leaving and not generation.calls
            if last:
                generation.engine.close()

    def replace(self, by: Generation) -> None:
        """Calls that begin now run on `by`. Raises Unavailable where all is closed already."""
        with self._lock:
            before = self._present
            if before.leaving:
                raise Unavailable(
                    "the engine has been closed", where=before.engine.manifest.spec.encoder
                )
            self._present = by
            before.leaving = True
            idle = not before.calls
        if idle:
            before.engine.close()

    def close(self) -> None:
        """No more calls; closing twice does nothing."""
        with self._lock:
            before = self._present
            idle = not before.leaving and not before.calls
            before.leaving = True
        if idle:
            before.engine.close()
