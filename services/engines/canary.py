"""The canary: one input run after every load, compared with what it answered when verified. Pure.

An OpenVINO blob with a flipped bit, or one imported under another hint, loads and answers wrong
numbers; digests catch the first and the canary the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from validators.contracts.engine import TOLERANCES, CanaryOutput, EngineManifest
from validators.contracts.errors import Refused

SAMPLES = 64
_TINY = 1e-30


def record_canary(answer: Mapping[str, npt.NDArray[Any]]) -> tuple[CanaryOutput, ...]:
    """What to remember of the answer: shape, peak, and evenly spaced values.

    Raises:
        Refused: an answer that is not finite is nothing to compare with.
    """
    return tuple(_record(name, answer[name]) for name in sorted(answer))


def check_canary(manifest: EngineManifest, answer: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise Refused where a fresh load answers something else than the verified engine did.

    The bound is the precision's own parity tolerance: thread counts reorder sums.
    """
    if not manifest.canary_outputs:
        raise Refused(
            "the manifest records no canary answer",
            where=manifest.spec.encoder,
            remedy="Verify the engine again.",
        )
    bound = TOLERANCES[manifest.spec.precision].max_rel
    for expected in manifest.canary_outputs:
        if expected.name not in answer:
            raise _refuse(manifest, expected.name, "is missing")
        found = _record(expected.name, answer[expected.name])
        if found.shape != expected.shape:
            raise _refuse(manifest, expected.name, f"has shape {found.shape}, not {expected.shape}")
        gaps = np.abs(np.subtract(found.samples, expected.samples))
        if gaps.size and float(gaps.max()) > bound * max(expected.peak, _TINY):
            raise _refuse(manifest, expected.name, "has other values than when it was verified")


def _record(name: str, array: npt.NDArray[Any]) -> CanaryOutput:
    flat = np.asarray(array, dtype=np.float64).reshape(-1)
    if not np.isfinite(flat).all():
        raise Refused(
            f"output {name} of the canary run holds NaN or infinity",
            where=name,
            remedy="Do not serve this engine: build it again, in a wider precision if need be.",
        )
    picks = np.linspace(0, max(flat.size - 1, 0), min(SAMPLES, flat.size)).astype(np.int64)
    peak = float(np.abs(flat).max()) if flat.size else 0.0
    return CanaryOutput(name, tuple(array.shape), peak, tuple(flat[picks].tolist()))


def _refuse(manifest: EngineManifest, output: str, problem: str) -> Refused:
    return Refused(
        f"the canary run after loading went wrong: output {output} {problem}",
        where=f"{manifest.spec.encoder} on {manifest.spec.backend}",
        remedy="Do not serve this engine: fetch it again, or build and verify it again.",
    )
