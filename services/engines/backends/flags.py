"""The flags of an engine spec, checked: an unknown flag would change the key and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from validators.contracts.engine import EngineSpec
from validators.contracts.errors import Unsupported


def check_flags(spec: EngineSpec, known: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The spec's flags by name.

    Raises:
        Unsupported: a flag, or a value of one, that the backend does not know.
    """
    for name, value in spec.flags:
        if value not in known.get(name, ()):
            allowed = "; ".join(f"{key}: {', '.join(values)}" for key, values in known.items())
            raise Unsupported(
                f"{spec.backend} does not know the flag {name}={value}",
                where=spec.encoder,
                remedy=f"Use: {allowed}." if allowed else "Give it no flags.",
            )
    return dict(spec.flags)
