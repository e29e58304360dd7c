"""What this machine is, as far as compiled code can tell."""

from __future__ import annotations

import platform
from pathlib import Path

from validators.contracts.engine import HostIdentity
from validators.contracts.errors import Unavailable

_CPUINFO = Path("/proc/cpuinfo")

_X86 = frozenset((
    "sse4_1", "sse4_2", "ssse3", "avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "gfni", "avx_vnni",
    "avx_vnni_int8", "avx_ifma", "avx_ne_convert", "avx512f", "avx512dq", "avx512cd", "avx512bw",
    "avx512vl", "avx512ifma", "avx512vbmi", "avx512_vbmi2", "avx512_vnni", "avx512_bitalg",
    "avx512_vpopcntdq", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16",
    "amx_fp16", "avx10",
))  # fmt: skip
_ARM = frozenset((
    "asimd", "fphp", "asimdhp", "asimddp", "asimdfhm", "bf16", "i8mm", "sve", "sve2", "svebf16",
    "svei8mm", "sme", "sme2",
))  # fmt: skip
# The most telling feature names the machine: the first of these that it has.
_TELLING = (
    "amx_fp16", "amx_bf16", "avx512_fp16", "avx512_bf16", "avx512_vnni", "avx512f", "avx_vnni",
    "avx2", "avx", "sse4_2", "sme2", "sme", "sve2", "sve", "bf16", "i8mm", "asimddp", "asimd",
)  # fmt: skip


def this_host(cpuinfo: Path = _CPUINFO) -> HostIdentity:
    """The CPU of this machine: its instruction sets decide what a CPU backend compiles.

    Raises:
        Unavailable: the system does not list them (no /proc/cpuinfo).
    """
    try:
        text = cpuinfo.read_text()
    except OSError as error:
        raise Unavailable(
            "the instruction sets of this machine cannot be read",
            where=str(cpuinfo),
            remedy="Build and run engines on Linux, where /proc/cpuinfo lists them.",
        ) from error
    return identify_cpu(platform.machine(), text)


def identify_cpu(machine: str, cpuinfo: str) -> HostIdentity:
    """The identity that a /proc/cpuinfo text describes: what *all* of its cores can do."""
    cores = [
        frozenset(line.partition(":")[2].split())
        for line in cpuinfo.splitlines()
        if line.partition(":")[0].strip() in ("flags", "Features")
    ]
    if not cores:
        raise Unavailable("no core lists its instruction sets", where="cpuinfo")
    shared = frozenset.intersection(*cores) & (_ARM if machine == "aarch64" else _X86)
    telling = next((name for name in _TELLING if name in shared), "baseline")
    return HostIdentity("cpu", f"{machine}-{telling}", tuple(sorted(shared)))


def mismatch(target: HostIdentity, host: HostIdentity) -> str | None:
    """Why code compiled for `target` may not run on `host`, or None where it may.

    CPU code must be for exactly these instruction sets: a backend picks other kernels, with other
    rounding, where one more is there. A plan for GPUs may name several architectures: one of them
    has to be the host's, and every other fact of the target (a driver) has to hold.
    """
    if target.kind != host.kind:
        return f"it was made for a {target.kind}, this is a {host.kind}"
    wanted, present = set(target.features), set(host.features)
    if target.kind == "cpu":
        if (target.name, wanted) == (host.name, present):
            return None
        lacking, extra = sorted(wanted - present), sorted(present - wanted)
        return (
            f"this host is {host.name}; it lacks {lacking or 'nothing'}, adds {extra or 'nothing'}"
        )
    architectures = {fact for fact in wanted if fact.startswith("SM")}
    if not architectures & present:
        return f"it was made for {', '.join(sorted(architectures))}, this is {host.name}"
    unmet = sorted(wanted - architectures - present)
    return f"this host does not have {', '.join(unmet)}" if unmet else None
