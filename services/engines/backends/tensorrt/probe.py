"""What TensorRT can do here. It can crash without a driver: `examine` in a child only."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from services.engines.nvidia.driver import first_gpu
from services.engines.requests import Availability
from validators.contracts.engine import HostIdentity
from validators.contracts.errors import Unavailable, Unsupported

MAJOR = "11"


def library() -> Any:
    """The `tensorrt` module, version 11.

    Raises:
        Unavailable: it is not installed, does not import, or has another major version.
    """
    try:
        trt = importlib.import_module("tensorrt")
    except (ImportError, OSError) as error:  # its loader raises OSError for a missing library
        raise Unavailable(
            f"TensorRT cannot be imported: {error}",
            where="tensorrt",
            remedy="Install tensorrt 11 from NVIDIA's package index on a host with a GPU.",
        ) from error
    version = str(getattr(trt, "__version__", "none"))
    if version.partition(".")[0] != MAJOR:
        raise Unavailable(
            f"TensorRT {version} is installed, version {MAJOR} is needed",
            where="tensorrt",
            remedy=f"Install tensorrt>={MAJOR},<{int(MAJOR) + 1}.",
        )
    return trt


def examine() -> Availability:
    try:
        trt = library()
    except Unavailable as error:
        return Availability(False, str(error))
    gpu = first_gpu()
    if gpu is None:
        return Availability(
            False,
            "TensorRT times kernels on the GPU it builds for; this host has no NVIDIA driver",
            trt.__version__,
        )
    host = gpu.identity(with_driver=True)
    reason = f"builds for and runs on {host.name}"
    return Availability(True, reason, trt.__version__, can_run=True, host=host)


def choose_target(names: Sequence[str], found: Availability) -> HostIdentity:
    """Only the GPU of this host: TensorRT times its kernels where it builds."""
    if tuple(names) != ("host",):
        raise Unsupported(
            f"TensorRT builds for the GPU of its host, not for {', '.join(names)}",
            where="tensorrt",
            remedy="Build on a host with that GPU, or use tensorrt_rtx ahead of time.",
        )
    if found.host is None:
        raise Unavailable(found.reason, where="tensorrt", remedy="Build on a host with a GPU.")
    return found.host
