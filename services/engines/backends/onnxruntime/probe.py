"""What ONNX Runtime can do here."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from services.engines.backends.targets import cpu_target
from services.engines.host import this_host
from services.engines.requests import Availability
from validators.contracts.engine import HostIdentity
from validators.contracts.errors import Unavailable


def library() -> Any:
    """The `onnxruntime` module.

    Raises:
        Unavailable: it is not installed or does not import.
    """
    try:
        return importlib.import_module("onnxruntime")
    except ImportError as error:
        raise Unavailable(
            f"ONNX Runtime cannot be imported: {error}",
            where="onnxruntime",
            remedy="Install onnxruntime.",
        ) from error


def examine() -> Availability:
    try:
        ort = library()
    except Unavailable as error:
        return Availability(False, str(error))
    host = this_host()
    return Availability(True, f"runs on {host.name}", ort.__version__, can_run=True, host=host)


def choose_target(names: Sequence[str], found: Availability) -> HostIdentity:
    del found  # this machine, whether or not the package is here
    return cpu_target("onnxruntime", names)
