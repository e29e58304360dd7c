"""What has to hold inside one encoder of a user's file: its source, tensors and shape profiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from validators.contracts.pipeline_complaints import Complaint, dotted, suggest
from validators.contracts.pipeline_encoder_schema import (
    EncoderSection,
    PlannedProfilesSection,
    Ranges,
    RangeSection,
    TensorSection,
)
from validators.contracts.pipeline_parts import Parts
from validators.contracts.yaml_lines import Path

BATCH = "batch"
"""The one dimension that a default profile knows how to range."""

MAX_PLANNED_DIMS = 4
"""Named dimensions that profiles are planned over."""


def encoder_complaints(parts: Parts) -> Iterator[Complaint]:
    """Everything that is wrong inside the readable encoders."""
    names = parts.modality_names()
    for name, encoder in parts.readable_encoders().items():
        path: Path = ("encoders", name)
        if encoder.modality not in names:
            yield Complaint(
                (*path, "modality"),
                f"encoders.{name}.modality is {encoder.modality!r}, which is not declared.",
                f"{suggest(encoder.modality, names)} A new one is declared under modalities.",
            )
        yield from _check_source(path, encoder)
        yield from _check_tensors((*path, "inputs"), encoder.inputs)
        yield from _check_tensors((*path, "outputs"), encoder.outputs)
        yield from _check_profiles(path, encoder)
        yield from _check_planning(path, encoder)
        yield from _check_repeats((*path, "precision"), encoder.precision)
        yield from _check_repeats((*path, "outside"), encoder.outside)


def stated_profiles(encoder: EncoderSection) -> list[tuple[Path, Ranges]] | None:
    """The profiles or bounds that the file states, each with its place; None for the default."""
    stated = encoder.profiles
    if isinstance(stated, list):
        return [(("profiles", index), ranges) for index, ranges in enumerate(stated)]
    if isinstance(stated, PlannedProfilesSection) and stated.bounds is not None:
        return [(("profiles", "bounds"), stated.bounds)]
    return None


def _check_source(path: Path, encoder: EncoderSection) -> Iterator[Complaint]:
    if (encoder.source.onnx is None) == (encoder.source.torch is None):
        yield Complaint(
            (*path, "source"), f"{dotted(path)}.source has to name exactly one of onnx and torch.",
            "Write {onnx: models/encoder.onnx} or {torch: \"package.module:function\"}.",
        )  # fmt: skip
    kind = encoder.preprocess.kind
    if kind in ("wordpiece", "transcript") and "tokenizer" not in encoder.preprocess.assets:
        yield Complaint(
            (*path, "preprocess", "assets"),
            f"{dotted(path)}.preprocess is {kind} but has no asset called tokenizer.",
            "Add assets: {tokenizer: path/to/tokenizer.json}.",
        )


def _check_tensors(path: Path, tensors: list[TensorSection]) -> Iterator[Complaint]:
    seen: set[str] = set()
    for index, tensor in enumerate(tensors):
        here = (*path, index)
        if tensor.name in seen:
            yield Complaint(
                (*here, "name"), f"{dotted(path)} has two tensors called {tensor.name!r}.",
                "Give each the name it has in the model's graph.",
            )  # fmt: skip
        seen.add(tensor.name)
        if tensor.space is not None and tensor.meaning != "global_embedding":
            yield Complaint(
                (*here, "space"),
                f"{tensor.name} is {tensor.meaning}, and only a global_embedding lies in a space.",
                "Remove space, or write meaning: global_embedding.",
            )
        if tensor.range is not None and tensor.range[0] >= tensor.range[1]:
            yield Complaint(
                (*here, "range"), f"The range {tensor.range} of {tensor.name} is empty.",
                "Write the lowest value first: [-1, 1].",
            )  # fmt: skip
        if tensor.time_base is not None and tensor.time_base.dim not in tensor.shape:
            yield Complaint(
                (*here, "time_base", "dim"),
                f"The time base of {tensor.name} counts {tensor.time_base.dim!r}, which is not in "
                f"its shape {tensor.shape}.",
                suggest(tensor.time_base.dim, [str(dim) for dim in tensor.shape]),
            )


def _check_profiles(path: Path, encoder: EncoderSection) -> Iterator[Complaint]:
    stated = stated_profiles(encoder)
    if stated is None:
        yield from _check_default_profile(path, encoder)
        return
    inputs = {item.name: item for item in encoder.inputs}
    for place, profile in stated:
        here = (*path, *place)
        for missing in inputs.keys() - profile.keys():
            yield Complaint(
                here, f"{dotted(here)} has no shapes for the input {missing!r}.",
                f"Add {missing}: {{min: [...], opt: [...], max: [...]}}.",
            )  # fmt: skip
        for name in profile.keys() - inputs.keys():
            yield Complaint(
                (*here, name), f"{dotted(here)} names {name!r}, which is not an input.",
                suggest(name, list(inputs)),
            )  # fmt: skip
        known = {name: shapes for name, shapes in profile.items() if name in inputs}
        wrong = False
        for name, shapes in known.items():
            for complaint in _check_range((*here, name), shapes, inputs[name]):
                wrong = True
                yield complaint
        if not wrong:
            yield from _check_names(here, known, inputs)


def _check_default_profile(path: Path, encoder: EncoderSection) -> Iterator[Complaint]:
    for tensor in encoder.inputs:
        loose = [dim for dim in tensor.shape if isinstance(dim, str) and dim != BATCH]
        if loose:
            yield Complaint(
                (*path, "profiles"),
                f"{dotted(path)} has no profiles, and the size of {', '.join(loose)} in its input "
                f"{tensor.name} is not fixed.",
                "Add profiles with min, opt and max shapes for every input.",
            )


def _check_planning(path: Path, encoder: EncoderSection) -> Iterator[Complaint]:
    if encoder.profiles is None or isinstance(encoder.profiles, list):
        return
    names = dict.fromkeys(dim for item in encoder.inputs for dim in item.shape
                          if isinstance(dim, str))  # fmt: skip
    if not names:
        yield Complaint(
            (*path, "profiles"),
            f"{dotted(path)} has inputs of fixed sizes only, so there are no profiles to plan.",
            "Remove profiles, or name the dimensions that change.",
        )
    if len(names) > MAX_PLANNED_DIMS:
        yield Complaint(
            (*path, "profiles"),
            f"{dotted(path)} has {len(names)} named dimensions, and profiles are planned over "
            f"{MAX_PLANNED_DIMS} at most: {', '.join(names)}.",
            "Write the profiles out, or fix the size of some.",
        )


def _check_repeats(path: Path, stated: str | Sequence[str]) -> Iterator[Complaint]:
    if not isinstance(stated, str):
        for index, item in enumerate(stated):
            if item in stated[:index]:
                yield Complaint(
                    (*path, index), f"{dotted(path)} names {item} twice.", "Name each once."
                )


def _check_range(path: Path, shapes: RangeSection, tensor: TensorSection) -> Iterator[Complaint]:
    rank = len(tensor.shape)
    for key, sizes in (("min", shapes.min), ("opt", shapes.opt), ("max", shapes.max)):
        if len(sizes) != rank:
            yield Complaint(
                (*path, key),
                f"{dotted((*path, key))} has {len(sizes)} dimensions, and the contract of "
                f"{tensor.name} has {rank}.",
                f"Write {rank} sizes, for {tensor.shape}.",
            )
            continue
        for dim, size in zip(tensor.shape, sizes, strict=True):
            if isinstance(dim, int) and size != dim:
                yield Complaint(
                    (*path, key),
                    f"{dotted((*path, key))} has {size} where the contract of {tensor.name} fixes "
                    f"{dim}.",
                    f"Write {dim} there, or give that dimension a name in the contract.",
                )
    if len({len(shapes.min), len(shapes.opt), len(shapes.max)}) == 1:
        ordered = zip(shapes.min, shapes.opt, shapes.max, strict=True)
        if not all(low <= best <= high for low, best, high in ordered):
            yield Complaint(
                path, f"{dotted(path)} is not min <= opt <= max in every dimension.",
                "Put the three shapes in order.",
            )  # fmt: skip


def _check_names(
    path: Path, profile: Mapping[str, RangeSection], inputs: Mapping[str, TensorSection]
) -> Iterator[Complaint]:
    """One name has one range within a profile, whichever tensor it stands in."""
    ranges: dict[str, tuple[str, tuple[int, int, int]]] = {}
    for name, shapes in profile.items():
        sizes = zip(inputs[name].shape, shapes.min, shapes.opt, shapes.max, strict=True)
        for dim, low, best, high in sizes:
            if isinstance(dim, int):
                continue
            owner, known = ranges.setdefault(dim, (name, (low, best, high)))
            if known != (low, best, high):
                yield Complaint(
                    (*path, name),
                    f"The dimension {dim} is {known} (min, opt, max) in {owner} and "
                    f"{(low, best, high)} in {name}.",
                    "Give it the same sizes in both: one name has one value within a request.",
                )
