"""Whether one tensor may feed another, and the adapter that would make it fit.

Two ends connect only where type, rank, named dimensions, meaning, embedding space, time base, range
and state agree. Nothing is converted in silence: every disagreement is a mismatch that names the
adapter which would fix it, so that native representations are kept until somebody decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from validators.contracts.tensors import Dim, Meaning, StateKind, TensorSpec, TimeBase

_SEQUENCES = frozenset({Meaning.PATCH_FEATURES, Meaning.FRAME_FEATURES, Meaning.TOKEN_FEATURES})
_CLASSES = frozenset({Meaning.LOGITS, Meaning.SCORES})


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One disagreement between two ends.

    `code` is the rule ("dtype", "rank", "dimension", "meaning", "space", "time-base", "range",
    "state"); `gives` and `wants` are what each end says; `adapter` is an imperative sentence.
    """

    code: str
    gives: str
    wants: str
    adapter: str


def connect(
    producer: TensorSpec,
    consumer: TensorSpec,
    *,
    producer_state: StateKind = StateKind.STATELESS,
    consumer_state: StateKind = StateKind.STATELESS,
) -> tuple[Mismatch, ...]:
    """Every way in which `producer` does not fit where `consumer` is wanted; empty if it fits.

    A named dimension of the consumer takes whatever the producer has there, as long as one name
    stands for one dimension; a fixed one takes that size only. The states are those of the
    encoders: what keeps a cache between calls does not meet what keeps none of its kind.
    """
    found = [
        *_compare_meaning(producer, consumer),
        *_compare_shape(producer, consumer),
        *_compare_space(producer, consumer),
        *_compare_type(producer, consumer),
        *_compare_time(producer, consumer),
        *_compare_range(producer, consumer),
        *_compare_state(producer_state, consumer_state),
    ]
    return tuple(found)


def form(spec: TensorSpec) -> str:
    """Meaning and shape for a sentence: `patch_features [batch, 49, 768]`."""
    return f"{spec.meaning.value} [{', '.join(str(dim) for dim in spec.shape)}]"


def _compare_meaning(producer: TensorSpec, consumer: TensorSpec) -> Iterator[Mismatch]:
    gives, wants = producer.meaning, consumer.meaning
    if gives is wants:
        return
    if gives in _SEQUENCES and wants is Meaning.GLOBAL_EMBEDDING:
        adapter = f"Pool {form(producer)} → {form(consumer)}."
    elif gives is Meaning.GLOBAL_EMBEDDING and wants in _SEQUENCES:
        adapter = (
            f"Give {form(consumer)} from before the pooling as another output of the encoder: "
            f"{form(producer)} cannot be unpooled."
        )
    elif gives in _CLASSES and wants is Meaning.GLOBAL_EMBEDDING:
        adapter = (
            f"Combine class embeddings by the scores (conse): {form(producer)} → {form(consumer)}."
        )
    elif gives in _CLASSES and wants in _SEQUENCES:
        adapter = (
            f"Give the features that {producer.name} is computed from as another output of the "
            f"encoder, and map them by a learned connector → {form(consumer)}."
        )
    elif gives in _SEQUENCES and wants in _SEQUENCES:
        adapter = f"Learn a connector {form(producer)} → {form(consumer)}."
    elif gives in _CLASSES and wants is Meaning.TOKEN_IDS:
        adapter = f"Decode {form(producer)} → {form(consumer)} step by step."
    else:
        adapter = f"Put an encoder between {form(producer)} and {form(consumer)}."
    yield Mismatch("meaning", producer.describe(), consumer.describe(), adapter)


def _compare_shape(producer: TensorSpec, consumer: TensorSpec) -> Iterator[Mismatch]:
    features = _SEQUENCES | {Meaning.GLOBAL_EMBEDDING}
    if producer.meaning is not consumer.meaning and producer.meaning not in features:
        return  # the adapter for the meaning starts from another tensor: this one's sizes are moot
    if len(producer.shape) != len(consumer.shape):
        if producer.meaning is consumer.meaning:
            yield Mismatch(
                "rank", producer.describe(), consumer.describe(),
                f"Reshape {form(producer)} → {form(consumer)}, naming what each dimension is.",
            )  # fmt: skip
        else:
            yield from _compare_widths(producer, consumer)
        return
    bound: dict[str, Dim] = {}
    for position, (given, wanted) in enumerate(zip(producer.shape, consumer.shape, strict=True)):
        if isinstance(wanted, int):
            fits = given == wanted
        else:
            fits = bound.setdefault(wanted, given) == given
        if not fits:
            yield Mismatch(
                "dimension",
                f"{given} in dimension {position} of {producer.describe()}",
                f"{_bound_to(wanted, bound)} in dimension {position} of {consumer.describe()}",
                _resize(producer, consumer, position),
            )


def _compare_widths(producer: TensorSpec, consumer: TensorSpec) -> Iterator[Mismatch]:
    """Where ranks differ with the meaning, the last dimensions still have to fit afterwards."""
    given, wanted = producer.shape[-1:], consumer.shape[-1:]
    if given and wanted and isinstance(wanted[0], int) and given != wanted:
        yield Mismatch(
            "dimension",
            f"{given[0]} in the last dimension of {producer.describe()}",
            f"{wanted[0]} in the last dimension of {consumer.describe()}",
            _resize(producer, consumer, len(consumer.shape) - 1),
        )


def _resize(producer: TensorSpec, consumer: TensorSpec, position: int) -> str:
    given = producer.shape[-1] if position == len(consumer.shape) - 1 else producer.shape[position]
    wanted = consumer.shape[position]
    if position == 0:
        return f"Regroup the batch: the consumer takes {wanted}, the producer gives {given}."
    if position == len(consumer.shape) - 1:
        into = f" into space {consumer.space}" if consumer.space else ""
        how = (
            "by a ridge map" if consumer.meaning is Meaning.GLOBAL_EMBEDDING else "by a linear map"
        )
        return f"Project {given} → {wanted}{into} {how}."
    return f"Pad, cut or resample dimension {position} ({given} → {wanted})."


def _bound_to(wanted: Dim, bound: dict[str, Dim]) -> str:
    if isinstance(wanted, int) or bound.get(wanted) == wanted:
        return f"{wanted}"
    return f"{wanted} (which is {bound[wanted]} already)"


def _compare_space(producer: TensorSpec, consumer: TensorSpec) -> Iterator[Mismatch]:
    both = producer.meaning is consumer.meaning is Meaning.GLOBAL_EMBEDDING
    if both and consumer.space is not None and producer.space != consumer.space:
        given, wanted = (spec.shape[-1] if spec.shape else 1 for spec in (producer, consumer))
        yield Mismatch(
            "space",
            f"space {producer.space or 'not named'} of {producer.describe()}",
            f"space {consumer.space}",
            f"Project {given} → {wanted} into space {consumer.space} by a ridge map.",
        )


def _compare_type(producer: TensorSpec, consumer: TensorSpec) -> Iterator[Mismatch]:
    if producer.dtype is not consumer.dtype:
        yield Mismatch(
            "dtype", producer.describe(), consumer.describe(),
            f"Cast {producer.dtype.value}→{consumer.dtype.value}.",
        )  # fmt: skip


def _compare_time(producer: TensorSpec, consumer: TensorSpec) -> Iterator[Mismatch]:
    gives, wants = producer.time_base, consumer.time_base
    if wants is None or gives == wants:
        return
    if gives is None:
        yield Mismatch(
            "time-base", f"no time base of {producer.describe()}", _rate(wants),
            f"Declare the time base of {producer.name}, or sample it at {wants.rate_hz:g} Hz.",
        )  # fmt: skip
        return
    if gives.rate_hz != wants.rate_hz:
        yield Mismatch(
            "time-base", _rate(gives), _rate(wants),
            f"Resample {gives.rate_hz:g} Hz → {wants.rate_hz:g} Hz.",
        )  # fmt: skip
    if gives.offset_ms != wants.offset_ms:
        yield Mismatch(
            "time-base", f"offset {gives.offset_ms:g} ms", f"offset {wants.offset_ms:g} ms",
            f"Shift by {wants.offset_ms - gives.offset_ms:g} ms.",
        )  # fmt: skip


def _rate(base: TimeBase) -> str:
    return f"{base.rate_hz:g} Hz along {base.dim}"


def _compare_range(producer: TensorSpec, consumer: TensorSpec) -> Iterator[Mismatch]:
    gives, wants = producer.value_range, consumer.value_range
    if gives is None or wants is None or (wants[0] <= gives[0] and gives[1] <= wants[1]):
        return
    yield Mismatch(
        "range", f"{gives[0]:g} to {gives[1]:g}", f"{wants[0]:g} to {wants[1]:g}",
        f"Rescale [{gives[0]:g}, {gives[1]:g}] → [{wants[0]:g}, {wants[1]:g}].",
    )  # fmt: skip


def _compare_state(producer: StateKind, consumer: StateKind) -> Iterator[Mismatch]:
    if producer is consumer:
        return
    holder = producer if consumer is StateKind.STATELESS else consumer
    yield Mismatch(
        "state", producer.value, consumer.value,
        f"Drive the end with a {holder.value} step by step with its cache, or export it without "
        "one.",
    )  # fmt: skip
