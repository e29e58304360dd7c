"""From the checked section of an encoder to its value: contract, precisions, profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.encoder_rules import BATCH, stated_profiles
from validators.contracts.engine import Outside, Precision, ShapeProfile, ShapeRange
from validators.contracts.pipeline import AutoProfiles, EncoderEntry, EncoderSource, SourceKind
from validators.contracts.pipeline_encoder_schema import (
    AutoSection,
    EncoderSection,
    Profiles,
    TensorSection,
)
from validators.contracts.tensors import DType, Meaning, StateKind, TensorSpec, TimeBase

AUTO_PRECISIONS = (
    Precision.FP32, Precision.BF16, Precision.FP16, Precision.INT8, Precision.INT4,
)  # fmt: skip
"""The candidates that `precision: auto` stands for."""

DEFAULT_BATCH = (1, 1, 8)
"""Minimum, optimum and maximum of `batch` where an encoder declares no profile."""

Scalar = str | int | float | bool


def build_encoder(name: str, section: EncoderSection) -> EncoderEntry:
    """The encoder of a section that breaks no rule."""
    source = section.source
    precisions = _precisions(section.precision)
    contract = EncoderContract(
        name=name,
        version=section.version,
        modality=section.modality,
        inputs=tuple(_tensor(item) for item in section.inputs),
        outputs=tuple(_tensor(item) for item in section.outputs),
        preprocess=PreprocessSpec(section.preprocess.kind, options_of(section.preprocess.options)),
        state=StateKind(section.state),
        licence=section.licence,
    )
    return EncoderEntry(
        contract=contract,
        source=EncoderSource(SourceKind.ONNX, source.onnx) if source.onnx is not None
        else EncoderSource(SourceKind.TORCH, source.torch or ""),
        precision=precisions[0],
        profiles=_profiles(section),
        asset_files=tuple(sorted(section.preprocess.assets.items())),
        precisions=precisions if len(precisions) > 1 else (),
        auto=_auto(section.profiles),
        outside=tuple(Outside(item) for item in section.outside),
    )  # fmt: skip


def _tensor(section: TensorSection) -> TensorSpec:
    base, limits = section.time_base, section.range
    return TensorSpec(
        name=section.name,
        dtype=DType(section.dtype),
        shape=tuple(section.shape),
        meaning=Meaning(section.meaning),
        space=section.space,
        time_base=TimeBase(base.dim, base.rate_hz, base.offset_ms) if base is not None else None,
        value_range=(limits[0], limits[1]) if limits is not None else None,
    )


def _precisions(stated: str | Sequence[str]) -> tuple[Precision, ...]:
    """The candidates, the first one being the precision that is built without measuring."""
    if stated == "auto":
        return AUTO_PRECISIONS
    return tuple(Precision(item) for item in ([stated] if isinstance(stated, str) else stated))


def _auto(stated: Profiles | None) -> AutoProfiles | None:
    if stated is None or isinstance(stated, list):
        return None
    auto = AutoSection() if isinstance(stated, str) else stated.auto
    return AutoProfiles(auto.count, auto.memory_mb)


def _profiles(section: EncoderSection) -> tuple[ShapeProfile, ...]:
    """Ranges in the order of the contract's inputs; the bounds alone where they are planned."""
    stated = stated_profiles(section)
    if stated is None:
        return (ShapeProfile(tuple(_default_range(item) for item in section.inputs)),)
    return tuple(
        ShapeProfile(
            tuple(
                ShapeRange(
                    item.name,
                    tuple(profile[item.name].min),
                    tuple(profile[item.name].opt),
                    tuple(profile[item.name].max),
                )
                for item in section.inputs
            )
        )
        for _, profile in stated
    )


def _default_range(tensor: TensorSection) -> ShapeRange:
    sizes = [DEFAULT_BATCH if dim == BATCH else (int(dim),) * 3 for dim in tensor.shape]
    return ShapeRange(
        tensor.name,
        tuple(size[0] for size in sizes),
        tuple(size[1] for size in sizes),
        tuple(size[2] for size in sizes),
    )


def options_of(options: Mapping[str, Scalar]) -> tuple[tuple[str, Scalar], ...]:
    """Options in one order, however they were written."""
    return tuple(sorted(options.items()))
