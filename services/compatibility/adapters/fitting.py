"""Fits adapters in a child process: one thread, bounded memory, torch stays out of the caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from services.children.phases import Progress
from services.children.process import Cancel, Limits, run_child
from services.children.scratch import scratch
from services.compatibility.adapters.pairs import AdapterPairs
from validators.compatibility.adapters import (
    AdapterChoice,
    AdapterKind,
    AdapterMeasurement,
    choose_adapter,
    missing_pairs,
)

FIT_ADAPTERS = "services.compatibility.tasks.fit_adapters"


@dataclass(frozen=True, slots=True)
class FitRequest:
    """Fit adapters on the pairs of a file; the models go to the folder `out`."""

    pairs: str
    out: str
    seed: int


@dataclass(frozen=True, slots=True)
class FitAnswer:
    measured: tuple[AdapterMeasurement, ...]


@dataclass(frozen=True, slots=True)
class FittedAdapters:
    """Every candidate with its ONNX bytes, and which one is taken."""

    choice: AdapterChoice
    measured: tuple[AdapterMeasurement, ...]
    models: Mapping[AdapterKind, bytes]


def fit_adapters(
    pairs: AdapterPairs,
    workdir: Path,
    *,
    subject: str,
    kept_share: float = 0.8,
    seed: int = 0,
    limits: Limits | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> FittedAdapters:
    """Fit, measure and choose. With too few items nothing is fitted, and the choice says how few.

    Items of which a vector is not finite are left out. `subject` names the encoder in errors.

    Raises:
        BadInput, TooLarge: pairs that do not fit each other, or too many; or an error of
        `services.children.errors` where the child was stopped.
    """
    sound = pairs.sound()
    if missing_pairs(len(sound.items)):
        return FittedAdapters(choose_adapter((), pairs=len(sound.items)), (), {})
    with scratch(workdir) as folder:
        file = folder / "pairs.npz"
        sound.save(file)
        result = run_child(
            FIT_ADAPTERS, FitRequest(str(file), str(folder), seed), folder,
            subject=subject, limits=limits, progress=progress, cancel=cancel,
        )  # fmt: skip
        measured = result.answer(FitAnswer).measured
        models = {item.kind: (folder / model_name(item.kind)).read_bytes() for item in measured}
    choice = choose_adapter(measured, kept_share=kept_share, pairs=len(sound.items))
    return FittedAdapters(choice, measured, models)


def model_name(kind: AdapterKind) -> str:
    """The file of one candidate in the child's folder."""
    return f"{kind.value}.onnx"
