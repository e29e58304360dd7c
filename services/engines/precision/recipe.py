"""From a checked fp32 ONNX to one that carries another precision. Runs in a child process.

Int8 and int4 keep in float what parity on held-out data and on the profiles' corners asks for; the
bar is HEADROOM of the tolerance, because a compiler fuses and rounds in its own way afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import onnx

from services.engines.cases import make_cases
from services.engines.export.checked import check_encoder
from services.engines.precision.bake import NOTES_KEY
from services.engines.precision.calibration import check_calibration
from services.engines.precision.carried import carried_precision
from services.engines.precision.deviations import worst_deviation
from services.engines.precision.observe import USUAL, observe, run_model
from services.engines.precision.packed import BLOCK, at_opset, pack, packable
from services.engines.precision.prepare import prepare, split_layers
from services.engines.precision.quantised import calibrated_values, quantisable, quantise
from services.engines.precision.sensitivity import Choice, Evaluate, Search
from services.engines.precision.typed import narrow_model, watched_values
from services.engines.tensors import Arrays
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import TOLERANCES, Precision, ShapeProfile, Tolerance
from validators.contracts.errors import Unsupported
from validators.contracts.ports import Tensors

HEADROOM = 0.8
"""Share of the tolerance that a baked model may use."""

MAX_SAMPLES = 96
"""Calibration samples that are used, evenly spread over what is given."""

HELD_OUT = 4
"""Every fourth sample is held out: ranges do not see it, parity does."""

JUDGED = 24
"""Samples that a candidate is judged by: the held-out ones first, then some that ranges saw."""

SCREENED = 2
"""Held-out samples that rank a layer alone."""

MAX_CASE_BYTES = 16 * 1024 * 1024
"""Profile corners with larger inputs are left to the verification of the built engine."""


Rewrite = Callable[[Sequence[str]], onnx.ModelProto]


@dataclass(frozen=True, slots=True)
class BakedModel:
    """The file's bytes, and what a person should know of how it came to be."""

    onnx: bytes
    notes: tuple[str, ...]


def bake_precision(
    model: bytes,
    contract: EncoderContract,
    precision: Precision,
    calibration: Sequence[Tensors] = (),
    *,
    profiles: Sequence[ShapeProfile],
    tolerance: Tolerance | None = None,
) -> BakedModel:
    """The model carrying the precision; the same inputs give the same bytes.

    Raises:
        BadInput: the calibration data cannot be this encoder's, or the model is not fp32.
        Unsupported: the model has nothing to compute in that precision, or nothing that holds.
    """
    if precision is Precision.FP32:
        return BakedModel(model, ())
    prepared = prepare(model)
    carried = carried_precision(prepared)
    if carried is not Precision.FP32:
        raise Unsupported(
            f"the model carries {carried.value} already, {precision.value} cannot be baked into it",
            where=contract.name,
            remedy="Start from the fp32 model, or declare what the model carries.",
        )
    unseen = check_calibration(contract, profiles, calibration)
    bench = _Bench(prepared, contract, precision, _thinned(calibration), profiles, tolerance)
    baked, notes = _RECIPES[precision](bench)
    notes = (*notes, *unseen)
    baked.metadata_props.add(key=NOTES_KEY, value=json.dumps([precision.value, *notes]))
    run = precision is not Precision.BF16  # ONNX Runtime has no bf16 kernels on a CPU
    return BakedModel(check_encoder(baked, contract, profiles, run=run), notes)


@dataclass(frozen=True, slots=True)
class _Bench:
    """One baking: the prepared model and what it is judged by."""

    model: onnx.ModelProto
    contract: EncoderContract
    precision: Precision
    samples: tuple[Tensors, ...]
    profiles: Sequence[ShapeProfile]
    tolerance: Tolerance | None

    @property
    def fitted(self) -> list[Tensors]:
        return [case for i, case in enumerate(self.samples) if i % HELD_OUT != HELD_OUT - 1]

    @property
    def held_out(self) -> list[Tensors]:
        return [case for i, case in enumerate(self.samples) if i % HELD_OUT == HELD_OUT - 1]


def _narrow(bench: _Bench) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    seen = observe(bench.model, watched_values(bench.model), bench.samples)
    made = narrow_model(bench.model, bench.precision, seen)
    return made.model, made.notes


def _int8(bench: _Bench) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    model = onnx.shape_inference.infer_shapes(split_layers(bench.model), data_prop=True)
    seen = observe(model, calibrated_values(model), bench.fitted)
    peaks = {name: item.peak for name, item in seen.items()}
    usual = {name: item.usual for name, item in seen.items()}
    return _choose(
        bench,
        quantisable(model),
        {
            "largest values": lambda layers: quantise(model, layers, peaks),
            f"the {USUAL:.2%} quantile": lambda layers: quantise(model, layers, usual),
        },
    )


def _int4(bench: _Bench) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    model = split_layers(at_opset(bench.model))
    way = f"blocks of {BLOCK}"
    return _choose(bench, packable(model), {way: lambda layers: pack(model, layers)})


_RECIPES = {
    Precision.FP16: _narrow,
    Precision.BF16: _narrow,
    Precision.INT8: _int8,
    Precision.INT4: _int4,
}


def _choose(
    bench: _Bench, layers: Sequence[str], ways: Mapping[str, Rewrite]
) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """The model with as many layers rewritten as parity lets, in the way that promises most."""
    name = bench.precision.value
    if not layers:
        kinds = sorted({node.op_type for node in bench.model.graph.node})
        raise Unsupported(
            f"the model has no layer that {name} is for", where=bench.contract.name,
            remedy=f"Use another precision; its operators are: {', '.join(kinds)[:300]}.",
        )  # fmt: skip
    judge = _Judge(bench)
    searches = {way: Search(*judge.measures(rewrite)) for way, rewrite in ways.items()}
    way = max(searches, key=lambda item: searches[item].promise(layers))
    choice = searches[way].choose(layers)
    if not choice.quantised:
        raise Unsupported(
            f"no layer can be {name} within parity: with all {len(layers)} the deviation is "
            f"{choice.badness * HEADROOM:.2f} of what is tolerated",
            where=bench.contract.name,
            remedy="Use a wider precision, or more and truer calibration data.",
        )
    tries = sum(search.tries for search in searches.values())
    return ways[way](choice.quantised), _describe(choice, name, way, tries)


def _describe(choice: Choice, precision: str, way: str, tries: int) -> tuple[str, ...]:
    count = len(choice.quantised) + len(choice.floating)
    notes = [
        f"{len(choice.quantised)} of {count} layers are {precision} (scales by {way}), with "
        f"{choice.badness * HEADROOM:.3f} of the tolerated deviation, after "
        f"{tries} tries"
    ]
    if choice.floating:
        more = f" and {len(choice.floating) - 8} more" if len(choice.floating) > 8 else ""
        notes.append(f"left in float: {', '.join(choice.floating[:8])}{more}")
    return tuple(notes)


class _Judge:
    """Deviations of candidates from the fp32 model, on held-out data first of all.

    The profiles' corners are the cases that `verify` tries as well.
    """

    def __init__(self, bench: _Bench) -> None:
        corners = [
            case.feeds
            for case in make_cases(bench.contract.inputs, bench.profiles)
            if _size(case.feeds) <= MAX_CASE_BYTES
        ]
        corners.sort(key=_size)
        self._names = [spec.name for spec in bench.contract.outputs]
        samples = [*bench.held_out, *bench.fitted][:JUDGED]
        # those that rank come first
        self._cases = [*corners[:1], *samples, *corners[1:]]
        self._few = min(len(self._cases), 1 + SCREENED)
        self._reference: list[Arrays] = run_model(bench.model, self._names, self._cases)
        self._tolerance = bench.tolerance or TOLERANCES[bench.precision]

    def measures(self, rewrite: Rewrite) -> tuple[Evaluate, Evaluate]:
        """The whole measure and the cheap one that ranks, of sets of layers."""
        return (
            lambda layers: self._judge(rewrite(layers)),
            lambda layers: self._compare(rewrite(layers), self._few, optimise=False),
        )

    def _judge(self, candidate: onnx.ModelProto) -> float:
        """Rounded in two ways. A search by one of them finds sets that are lucky in that one."""
        exact = self._compare(candidate, len(self._cases), optimise=False)
        if exact > 1:
            return exact
        return max(exact, self._compare(candidate, len(self._cases), optimise=True))

    def _compare(self, candidate: onnx.ModelProto, count: int, *, optimise: bool) -> float:
        cases = self._cases[:count]
        found = run_model(candidate, self._names, cases, optimise=optimise)
        return worst_deviation(self._reference[:count], found, self._tolerance) / HEADROOM


def _size(feeds: Tensors) -> int:
    return sum(array.nbytes for array in feeds.values())


def _thinned(feeds: Sequence[Tensors]) -> tuple[Tensors, ...]:
    if len(feeds) <= MAX_SAMPLES:
        return tuple(feeds)
    return tuple(feeds[i * len(feeds) // MAX_SAMPLES] for i in range(MAX_SAMPLES))
