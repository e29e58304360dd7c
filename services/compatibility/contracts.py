"""What two versions declare differently, without running anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from validators.compatibility.measured import StaticDifference
from validators.contracts.digest import short
from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.engine import Precision
from validators.contracts.tensors import TensorSpec


def list_differences(
    old: EncoderContract,
    new: EncoderContract,
    old_precision: Precision,
    new_precision: Precision,
) -> tuple[StaticDifference, ...]:
    """Every declared difference, by name; the version itself is none."""
    pairs = (
        ("modality", old.modality, new.modality),
        ("state", old.state.value, new.state.value),
        ("precision", old_precision.value, new_precision.value),
        *_preprocess(old.preprocess, new.preprocess),
        *_tensors("inputs", old.inputs, new.inputs),
        *_tensors("outputs", old.outputs, new.outputs),
    )
    return tuple(StaticDifference(what, a, b) for what, a, b in pairs if a != b)


def _preprocess(old: PreprocessSpec, new: PreprocessSpec) -> Iterator[tuple[str, str, str]]:
    yield "preprocess", old.kind, new.kind
    for name, a, b in _joined(old.options, new.options):
        yield f"preprocess.{name}", a, b
    for name, a, b in _joined(
        ((name, short(digest)) for name, digest in old.assets),
        ((name, short(digest)) for name, digest in new.assets),
    ):
        yield f"preprocess.{name}", a, b


def _tensors(
    side: str, old: Iterable[TensorSpec], new: Iterable[TensorSpec]
) -> Iterator[tuple[str, str, str]]:
    for name, a, b in _joined(
        ((spec.name, _declared(spec)) for spec in old),
        ((spec.name, _declared(spec)) for spec in new),
    ):
        yield f"{side}.{name}", a, b


def _declared(spec: TensorSpec) -> str:
    space = f" in {spec.space}" if spec.space else ""
    bounds = f" within {list(spec.value_range)}" if spec.value_range else ""
    rate = f" at {spec.time_base.rate_hz:g} Hz" if spec.time_base else ""
    return f"{spec.describe()}{space}{bounds}{rate}"


def _joined(
    old: Iterable[tuple[str, object]], new: Iterable[tuple[str, object]]
) -> Iterator[tuple[str, str, str]]:
    before, after = dict(old), dict(new)
    for name in sorted(before.keys() | after.keys()):
        yield name, str(before.get(name, "absent")), str(after.get(name, "absent"))
