"""The backends by name. Listing them imports none of their packages."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.children.errors import ChildCrashed
from services.children.phases import Phases
from services.children.process import Limits, run_child
from services.children.scratch import scratch
from services.engines.backends.onnxruntime import build as onnxruntime_build
from services.engines.backends.onnxruntime import probe as onnxruntime_probe
from services.engines.backends.onnxruntime import run as onnxruntime_run
from services.engines.backends.openvino import build as openvino_build
from services.engines.backends.openvino import probe as openvino_probe
from services.engines.backends.openvino import run as openvino_run
from services.engines.backends.protocol import Backend, Session
from services.engines.backends.tensorrt import build as tensorrt_build
from services.engines.backends.tensorrt import probe as tensorrt_probe
from services.engines.backends.tensorrt import run as tensorrt_run
from services.engines.backends.tensorrt_rtx import build as tensorrt_rtx_build
from services.engines.backends.tensorrt_rtx import probe as tensorrt_rtx_probe
from services.engines.backends.tensorrt_rtx import run as tensorrt_rtx_run
from services.engines.requests import PROBE, Availability, ProbeRequest
from validators.contracts.engine import EngineSpec, HostIdentity
from validators.contracts.errors import NotFound

_PROBE_LIMITS = Limits(timeout_s=120, niceness=0)


@dataclass(frozen=True, slots=True)
class FolderBackend:
    """A backend put together from its folder's three modules."""

    name: str
    can_crash: bool  # on import: then only a child process examines it
    examine: Callable[[], Availability]
    choose_target: Callable[[Sequence[str], Availability], HostIdentity]
    check: Callable[[EngineSpec], None]
    build: Callable[[EngineSpec, Path, Phases], bytes]
    open: Callable[[EngineSpec, bytes, int], Session]

    def probe(self) -> Availability:
        return _probed(self.name)


_ALL: tuple[FolderBackend, ...] = (
    FolderBackend(
        "openvino", False, openvino_probe.examine, openvino_probe.choose_target,
        openvino_build.check, openvino_build.build, openvino_run.open_session,
    ),
    FolderBackend(
        "onnxruntime", False, onnxruntime_probe.examine, onnxruntime_probe.choose_target,
        onnxruntime_build.check, onnxruntime_build.build, onnxruntime_run.open_session,
    ),
    FolderBackend(
        "tensorrt", True, tensorrt_probe.examine, tensorrt_probe.choose_target,
        tensorrt_build.check, tensorrt_build.build, tensorrt_run.open_session,
    ),
    FolderBackend(
        "tensorrt_rtx", True, tensorrt_rtx_probe.examine, tensorrt_rtx_probe.choose_target,
        tensorrt_rtx_build.check, tensorrt_rtx_build.build, tensorrt_rtx_run.open_session,
    ),
)  # fmt: skip


def backends() -> tuple[Backend, ...]:
    """Every backend there is, whether or not it is available here."""
    return _ALL


def backend(name: str) -> Backend:
    """The backend of this name, or NotFound."""
    for item in _ALL:
        if item.name == name:
            return item
    raise NotFound(
        f"there is no engine backend called {name[:80]!r}",
        remedy="Use one of: " + ", ".join(item.name for item in _ALL) + ".",
    )


@functools.cache  # packages and hardware do not change under a running process
def _probed(name: str) -> Availability:
    chosen = backend(name)
    if not chosen.can_crash:
        return chosen.examine()
    try:
        with tempfile.TemporaryDirectory() as root, scratch(Path(root)) as folder:
            result = run_child(
                PROBE, ProbeRequest(name), folder, subject=name, limits=_PROBE_LIMITS
            )
    except ChildCrashed as error:
        return Availability(False, f"its libraries crash on this host: {error.what}")
    return result.answer(Availability)
