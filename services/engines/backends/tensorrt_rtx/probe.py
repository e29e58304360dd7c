"""What TensorRT for RTX can do here: build anywhere, run on a GPU. `examine` in a child only."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from services.engines.nvidia.driver import first_gpu
from services.engines.requests import Availability
from validators.contracts.engine import HostIdentity
from validators.contracts.errors import Unavailable, Unsupported

ARCHITECTURES = ("SM75", "SM80", "SM86", "SM89", "SM120", "SM121")
"""What it compiles for ahead of time, on a machine without a GPU; SM75 takes fp16 models only."""


def library() -> Any:
    """The `tensorrt_rtx` module.

    Raises:
        Unavailable: it is not installed or does not import.
    """
    try:
        return importlib.import_module("tensorrt_rtx")
    except (ImportError, OSError) as error:  # its loader raises OSError for a missing library
        raise Unavailable(
            f"TensorRT for RTX cannot be imported: {error}",
            where="tensorrt_rtx",
            remedy="Install tensorrt-rtx-cu13.",
        ) from error


def examine() -> Availability:
    try:
        trt = library()
    except Unavailable as error:
        return Availability(False, str(error))
    gpu = first_gpu()
    if gpu is None:
        reason = "builds plans ahead of time; running them needs an NVIDIA GPU, and there is none"
        return Availability(True, reason, trt.__version__)
    host = gpu.identity(with_driver=False)
    runs = host.name in ARCHITECTURES
    reason = f"runs on {host.name}" if runs else f"builds ahead of time; it has no {host.name}"
    return Availability(True, reason, trt.__version__, can_run=runs, host=host if runs else None)


def choose_target(names: Sequence[str], found: Availability) -> HostIdentity:
    """One plan for all the architectures named; "host" is the GPU of this machine."""
    if tuple(names) == ("host",):
        if found.host is None:
            raise Unavailable(
                found.reason, where="tensorrt_rtx",
                remedy="Name the architectures to build for, for example targets: [SM89].",
            )  # fmt: skip
        return found.host
    if unknown := [name for name in names if name not in ARCHITECTURES] or not names:
        raise Unsupported(
            f"TensorRT for RTX does not compile for {unknown if names else 'nothing'}",
            where="tensorrt_rtx",
            remedy="Use some of: " + ", ".join(ARCHITECTURES) + ".",
        )
    wanted = sorted(set(names), key=ARCHITECTURES.index)
    return HostIdentity("gpu", "+".join(wanted), tuple(sorted(wanted)))
