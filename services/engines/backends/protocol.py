"""What every backend offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from services.children.phases import Phases
from services.engines.requests import Availability
from validators.contracts.engine import EngineSpec, HostIdentity
from validators.contracts.ports import Tensors


class Session(Protocol):
    """A loaded engine, unguarded. `infer` may be called from several threads at once."""

    def infer(self, feeds: Tensors) -> dict[str, npt.NDArray[Any]]:
        """All outputs by name, in memory of their own."""
        ...

    def close(self) -> None: ...


class Backend(Protocol):
    """A compiler and its runtime behind one interface.

    name           as in pipeline files and engine specs
    can_crash      importing its package can take the process down: only children examine it
    examine        import the package and look, in this process
    choose_target  the target that names ("host", or SM names) stand for; Unsupported where it
                   cannot compile for one, Unavailable where "host" has no such hardware
    check          refuse, before anything is started, a precision, target or flag it cannot take
    build          compile; only ever called in a child process
    open           load the bytes of an engine, to run with so many threads
    """

    @property
    def name(self) -> str: ...
    @property
    def can_crash(self) -> bool: ...
    @property
    def examine(self) -> Callable[[], Availability]: ...
    @property
    def choose_target(self) -> Callable[[Sequence[str], Availability], HostIdentity]: ...
    @property
    def check(self) -> Callable[[EngineSpec], None]: ...
    @property
    def build(self) -> Callable[[EngineSpec, Path, Phases], bytes]: ...
    @property
    def open(self) -> Callable[[EngineSpec, bytes, int], Session]: ...

    def probe(self) -> Availability:
        """What the backend can do on this machine, asked safely, once per process."""
        ...
