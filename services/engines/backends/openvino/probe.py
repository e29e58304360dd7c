"""What OpenVINO can do here."""

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
    """The `openvino` module.

    Raises:
        Unavailable: it is not installed or does not import.
    """
    try:
        return importlib.import_module("openvino")
    except ImportError as error:
        raise Unavailable(
            f"OpenVINO cannot be imported: {error}", where="openvino", remedy="Install openvino."
        ) from error


def examine() -> Availability:
    try:
        ov = library()
    except Unavailable as error:
        return Availability(False, str(error))
    devices = ov.Core().available_devices
    if "CPU" not in devices:
        return Availability(False, f"OpenVINO sees no CPU device, only {devices}", ov.__version__)
    host = this_host()
    return Availability(True, f"runs on {host.name}", ov.__version__, can_run=True, host=host)


def choose_target(names: Sequence[str], found: Availability) -> HostIdentity:
    del found  # this machine, whether or not the package is here
    return cpu_target("openvino", names)
