"""Which engine may take another one's place while it serves. Pure."""

from __future__ import annotations

from validators.contracts.engine import EngineManifest, EngineState, ShapeProfile
from validators.contracts.errors import Refused


def require_replacement(old: EngineManifest, new: EngineManifest) -> None:
    """Raise Refused unless `new` answers what `old` answers, to every shape that it takes.

    Both are compiled from one ONNX file for one contract, backend and precision, and verified
    against that file: their vectors may mix.
    """
    differences = [
        (what, getattr(old.spec, part), getattr(new.spec, part))
        for part, what in _PARTS
        if getattr(old.spec, part) != getattr(new.spec, part)
    ]
    where = f"{old.spec.encoder} on {old.spec.backend}"
    if differences:
        what, before, after = differences[0]
        raise Refused(
            f"an engine of another {what} cannot take the place of this one: "
            f"{_told(after)}, not {_told(before)}",
            where=where,
            remedy="Build it from the ONNX file, backend and precision of the deployed engine.",
        )
    if old.source != new.source:
        raise Refused(
            "the new engine's ONNX file was baked from another model",
            where=where, remedy="Build it from the encoder's own model.",
        )  # fmt: skip
    if (old.inputs, old.outputs) != (new.inputs, new.outputs):
        raise Refused(
            "an engine of another contract cannot take the place of this one",
            where=where, remedy="Release the new contract instead.",
        )  # fmt: skip
    if new.state is not EngineState.VERIFIED:
        raise Refused(
            "the engine is not VERIFIED: its vectors may not mix with those of this one",
            where=where, remedy="Verify it against the model, then replace.",
        )  # fmt: skip
    for profile in old.spec.profiles:
        if not any(_reaches(other, profile) for other in new.spec.profiles):
            raise Refused(
                "the new engine would not take shapes that the present one takes",
                where=f"{where}: up to {_told_profile(profile)}",
                remedy="Build it with a profile that reaches as far.",
            )


_PARTS = (
    ("encoder", "encoder"),
    ("onnx", "ONNX file"),
    ("backend", "backend"),
    ("precision", "precision"),
)


def _reaches(one: ShapeProfile, other: ShapeProfile) -> bool:
    largest = {item.tensor: item.maximum for item in one.ranges}
    least = {item.tensor: item.minimum for item in one.ranges}
    return all(
        item.tensor in largest
        and all(a >= b for a, b in zip(largest[item.tensor], item.maximum, strict=True))
        and all(a <= b for a, b in zip(least[item.tensor], item.maximum, strict=True))
        for item in other.ranges
    )


def _told(value: object) -> str:
    return str(getattr(value, "value", value))


def _told_profile(profile: ShapeProfile) -> str:
    return ", ".join(f"{item.tensor} {list(item.maximum)}" for item in profile.ranges)
