"""Makes engine specs: what is to be built, with which version, for which target."""

from __future__ import annotations

from collections.abc import Sequence

from services.engines.backends.catalogue import backend
from services.engines.cases import ranges
from validators.contracts.digest import Digest
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import EngineSpec, Precision, ShapeProfile
from validators.contracts.errors import Unavailable


def specify(
    contract: EncoderContract,
    onnx: Digest,
    backend_name: str,
    precision: Precision,
    profiles: Sequence[ShapeProfile],
    *,
    targets: Sequence[str] = ("host",),
    flags: Sequence[tuple[str, str]] = (),
) -> EngineSpec:
    """The spec of one engine, with this machine's backend version and target in it.

    Profiles are written out in full, in the contract's order, so that two ways to write one set of
    profiles have one key. Several SM names make one plan for all of them.

    Raises:
        Unavailable: the backend cannot build here, with its reason.
        Unsupported: a precision, target or flag that it does not take.
    """
    chosen = backend(backend_name)
    found = chosen.probe()
    if not found.available:
        raise Unavailable(
            f"{backend_name} cannot build here: {found.reason}",
            where=contract.name,
            remedy="Leave this backend out of the pipeline, or build on a host that has it.",
        )
    spec = EngineSpec(
        encoder=contract.name,
        onnx=onnx,
        backend=backend_name,
        backend_version=found.version,
        precision=precision,
        profiles=tuple(ShapeProfile(ranges(contract.inputs, item)) for item in profiles),
        target=chosen.choose_target(targets, found),
        flags=tuple(sorted(flags)),
    )
    chosen.check(spec)
    return spec
