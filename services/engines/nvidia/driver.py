"""The GPUs of this machine by the driver's own library. Only ever loaded in a child process."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from validators.contracts.engine import HostIdentity

# CUDA driver API, cuda.h: CUdevice_attribute
_COMPUTE_CAPABILITY_MAJOR = 75
_COMPUTE_CAPABILITY_MINOR = 76


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device: `architecture` as in "SM89", `driver` the CUDA version it offers, "13.0"."""

    architecture: str
    driver: str

    def identity(self, *, with_driver: bool) -> HostIdentity:
        facts = (f"driver-{self.driver}",) if with_driver else ()
        return HostIdentity("gpu", self.architecture, tuple(sorted((self.architecture, *facts))))


def first_gpu() -> Gpu | None:
    """The first device, or None where there is no driver or no device."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    count, driver = ctypes.c_int(0), ctypes.c_int(0)
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value < 1:
        return None
    device = ctypes.c_int(0)
    if cuda.cuDeviceGet(ctypes.byref(device), 0) != 0:
        return None
    cuda.cuDriverGetVersion(ctypes.byref(driver))
    major, minor = (
        _attribute(cuda, code, device)
        for code in (_COMPUTE_CAPABILITY_MAJOR, _COMPUTE_CAPABILITY_MINOR)
    )
    version = f"{driver.value // 1000}.{driver.value % 1000 // 10}"
    return Gpu(f"SM{major}{minor}", version)


def _attribute(cuda: ctypes.CDLL, code: int, device: ctypes.c_int) -> int:
    value = ctypes.c_int(0)
    cuda.cuDeviceGetAttribute(ctypes.byref(value), code, device)
    return value.value
