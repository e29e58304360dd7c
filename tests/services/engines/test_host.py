from __future__ import annotations

from pathlib import Path

import pytest

from services.engines.host import identify_cpu, mismatch, this_host
from validators.contracts.engine import HostIdentity
from validators.contracts.errors import Unavailable

X86 = "processor : 0\nflags\t\t: fpu sse4_2 avx avx2 avx512f avx512_bf16 lm\n"


def test_this_machine_has_a_name_and_sorted_features() -> None:
    host = this_host()
    assert host.kind == "cpu"
    assert host.features == tuple(sorted(host.features))
    assert host == this_host()


@pytest.mark.parametrize(
    ("machine", "text", "name", "features"),
    [
        ("x86_64", X86, "x86_64-avx512_bf16", ("avx", "avx2", "avx512_bf16", "avx512f", "sse4_2")),
        ("x86_64", "flags : fpu lm", "x86_64-baseline", ()),
        (
            "aarch64",
            "Features\t: fp asimd asimddp sve bf16 crc32",
            "aarch64-sve",
            ("asimd", "asimddp", "bf16", "sve"),
        ),
    ],
)
def test_cpuinfo_is_read_on_both_architectures(
    machine: str, text: str, name: str, features: tuple[str, ...]
) -> None:
    assert identify_cpu(machine, text) == HostIdentity("cpu", name, features)


def test_unequal_cores_share_only_what_all_of_them_have() -> None:
    text = "Features : asimd sve\n\nFeatures : asimd\n"
    assert identify_cpu("aarch64", text).features == ("asimd",)


@pytest.mark.parametrize("text", ["", "processor : 0\n"])
def test_a_machine_that_does_not_say_is_unavailable(text: str, tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        identify_cpu("x86_64", text)
    with pytest.raises(Unavailable):
        this_host(tmp_path / "absent")


CPU = HostIdentity("cpu", "x86_64-avx2", ("avx", "avx2"))
WIDER = HostIdentity("cpu", "x86_64-avx512f", ("avx", "avx2", "avx512f"))
PLAN = HostIdentity("gpu", "SM86+SM89", ("SM86", "SM89"))
SM89 = HostIdentity("gpu", "SM89", ("SM89", "driver-13.0"))
SM120 = HostIdentity("gpu", "SM120", ("SM120", "driver-13.0"))


@pytest.mark.parametrize(
    ("target", "host", "fits"),
    [
        (CPU, CPU, True),
        (CPU, WIDER, False),
        (WIDER, CPU, False),
        (CPU, SM89, False),
        (PLAN, SM89, True),
        (PLAN, SM120, False),
        (SM89, SM89, True),
        (HostIdentity("gpu", "SM89", ("SM89", "driver-12.8")), SM89, False),
        (PLAN, CPU, False),
    ],
)
def test_an_engine_fits_only_the_host_it_was_made_for(
    target: HostIdentity, host: HostIdentity, fits: bool
) -> None:
    assert (mismatch(target, host) is None) is fits
