"""`assess_layers`: what was seen inside an encoder, judged.

NaN and infinity count where a precision was really computed, and block: nothing waives them. L∞ of
key layers (blocks, normalisations, outputs) warns, as do static differences and an activation near
the end of fp16's range. Whether vectors still fit each other is for `assess_compatibility`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from validators.compatibility.facts import is_epsilon
from validators.compatibility.layer_drift import layers_by_name, measure_drifts
from validators.compatibility.layers import (
    DriftLimits,
    LayerDrift,
    LayerStatistics,
    Trace,
    first_divergence,
)
from validators.compatibility.sandboxed import ExaminedVersion, SandboxMeasurement
from validators.compatibility.shares import share_text, upper_share
from validators.contracts.engine import Precision
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude

GATE = "compatibility"

FP16_LARGEST = 65504.0

_NAMED_BEST = ("torch", "onnxruntime", "openvino")


@dataclass(frozen=True, slots=True)
class LayerSettings:
    """`linf`: drift of a key layer that warns. `headroom`: how many times an activation has to fit
    into fp16's range."""

    linf: float = 0.03
    headroom: float = 4.0
    limits: DriftLimits = field(default_factory=DriftLimits)


def assess_layers(measured: SandboxMeasurement, settings: LayerSettings | None = None) -> Verdict:
    """Judge a new version, beside the old one where there is one. Pure."""
    settings = settings or LayerSettings()
    findings = [
        *_faults(measured),
        *_broken(measured),
        *_none_seen(measured),
        *_not_computed(measured),
        *_headroom(measured, settings),
        *_drifted(measured, settings),
        *_differences(measured),
    ]
    ran = any(trace.ran for trace in measured.new.traces)
    return conclude(
        GATE, findings, examined=measured.items if ran else 0, metrics=_metrics(measured)
    )


def compared(measured: SandboxMeasurement) -> Iterator[tuple[Trace, tuple[LayerDrift, ...]]]:
    """Each trace of the new version that the old one has too, with their drifts."""
    if measured.old is None:
        return
    for trace in measured.new.traces:
        before = measured.old.trace(trace.runtime, trace.precision)
        if trace.ran and before is not None:
            yield trace, measure_drifts(
                before, trace,
                old_reference=measured.old.trace(trace.runtime, Precision.FP32),
                new_reference=measured.new.trace(trace.runtime, Precision.FP32),
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Breakage:
    """Layers with NaN or infinity in one trace, in order, and the items in which there is any."""

    layers: tuple[LayerStatistics, ...]
    items: frozenset[int]


def find_breakage(version: ExaminedVersion, trace: Trace) -> Breakage:
    """What is not finite in a trace and not a mask's doing."""
    known = layers_by_name(version.trace(trace.runtime, Precision.FP32))
    places = {layer: layer.broken_places(known.get(layer.name)) for layer in trace.layers}
    return Breakage(
        tuple(layer for layer, items in places.items() if items),
        frozenset(item for items in places.values() for item in items),
    )


def _faults(measured: SandboxMeasurement) -> Iterator[Finding]:
    for version in _versions(measured):
        for fault in version.faults:
            yield Finding(
                GATE, "version-failed", f"{measured.encoder} {version.version}", Outcome.ERROR,
                fault, "an answer", "Look at the model: its process did not survive the items.",
                waivable=False,
            )  # fmt: skip


def _broken(measured: SandboxMeasurement) -> Iterator[Finding]:
    for version in _versions(measured):
        is_new = version is measured.new
        for trace in version.traces:
            found = find_breakage(version, trace)
            if not found.layers or not trace.genuine:
                continue
            first, share = found.layers[0], share_text(len(found.items), trace.items)
            yield Finding(
                GATE, "layer-not-finite" if is_new else "old-not-finite",
                f"{measured.encoder}.{first.name}", Outcome.FAIL if is_new else Outcome.WARN,
                f"{share}, in {trace.precision.value} on {trace.runtime}, "
                f"first in {first.kind} {first.name} of {len(found.layers)} such layers",
                "no NaN, no infinity",
                _remedy(version, trace, first) if is_new
                else "Nothing: the new version is judged by itself.",
                waivable=not is_new,
            )  # fmt: skip


def _remedy(version: ExaminedVersion, trace: Trace, layer: LayerStatistics) -> str:
    known = layers_by_name(version.trace(trace.runtime, Precision.FP32)).get(layer.name)
    if trace.precision is Precision.FP32 or known is None or known.broken_items():
        return "Take another version: this one answers NaN or infinity by itself."
    return (
        f"Keep {layer.name} in fp32, or serve another precision: its activations reach "
        f"{known.linf:.3g} there."
    )


def _none_seen(measured: SandboxMeasurement) -> Iterator[Finding]:
    """What so many finite items leave open: none seen is not never."""
    for precision, traces in _genuine(measured).items():
        if not any(find_breakage(measured.new, trace).items for trace in traces):
            yield Finding(
                GATE, "none-not-finite", f"{measured.encoder}.{precision.value}", Outcome.PASS,
                share_text(0, max(trace.items for trace in traces)), "no NaN, no infinity",
                "Examine more items where a closer bound is wanted.",
            )  # fmt: skip


def _genuine(measured: SandboxMeasurement) -> dict[Precision, list[Trace]]:
    """The traces of the new version by precision, of runtimes that really compute in it."""
    found: dict[Precision, list[Trace]] = {}
    for trace in measured.new.traces:
        if trace.ran and trace.genuine:
            found.setdefault(trace.precision, []).append(trace)
    return found


def _not_computed(measured: SandboxMeasurement) -> Iterator[Finding]:
    """A precision nobody computed here is not known to be free of NaN."""
    version = measured.new
    genuine = _genuine(measured)
    for precision in dict.fromkeys((*measured.required, *measured.planned)):
        if precision in genuine:
            continue
        required = precision in measured.required
        notes = [t.note for t in version.traces if t.precision is precision and t.note]
        yield Finding(
            GATE, "precision-not-computed", f"{measured.encoder}.{precision.value}",
            Outcome.INCONCLUSIVE if required else Outcome.WARN,
            notes[0] if notes else "no runtime here computes it", "a trace in that precision",
            f"Trace it on a host that computes in {precision.value}, or give the torch source.",
        )  # fmt: skip


def _headroom(measured: SandboxMeasurement, settings: LayerSettings) -> Iterator[Finding]:
    """The largest activation against fp16's largest number, where fp16 will run somewhere."""
    if Precision.FP16 not in (*measured.required, *measured.planned):
        return
    limit = FP16_LARGEST / settings.headroom
    near = [
        layer
        for trace in measured.new.traces
        if trace.precision in (Precision.FP16, Precision.FP32)
        for layer in trace.layers
        if layer.linf > limit
    ]
    if near:
        worst = max(near, key=lambda layer: layer.linf)
        yield Finding(
            GATE, "headroom", f"{measured.encoder}.{worst.name}", Outcome.WARN, worst.linf,
            limit, f"Keep {worst.name} in fp32: fp16 ends at 65504, other items may go further.",
        )  # fmt: skip


def _drifted(measured: SandboxMeasurement, settings: LayerSettings) -> Iterator[Finding]:
    """One finding per precision, by the names that people know best: a module's, then a graph's."""
    found: dict[Precision, tuple[int, Finding]] = {}
    for trace, drifts in compared(measured):
        rank = _NAMED_BEST.index(trace.runtime) if trace.runtime in _NAMED_BEST else 9
        finding = _drift(measured.encoder, trace, drifts, settings)
        if finding and rank < found.get(trace.precision, (10, finding))[0]:
            found[trace.precision] = rank, finding
    yield from (finding for _, finding in found.values())


def _drift(
    encoder: str, trace: Trace, drifts: tuple[LayerDrift, ...], settings: LayerSettings
) -> Finding | None:
    """The key layer that drifted most, and where the versions part."""
    key = [(item, item.linf) for item in drifts if item.key and item.linf is not None]
    beyond = [pair for pair in key if pair[1] > settings.linf]
    if not beyond:
        return None
    worst, linf = max(beyond, key=lambda pair: pair[1])
    parted = first_divergence(drifts, settings.limits)
    parting = _parting(parted.first, parted.last_agreeing) if parted else ""
    return Finding(
        GATE, "layer-linf-drift", f"{encoder}.{worst.new}", Outcome.WARN,
        f"{linf:.3g} in {trace.precision.value} on {trace.runtime}; "
        f"{len(beyond)} of {len(key)} key layers beyond the limit",
        settings.linf, f"Check what reads these layers. {parting}".strip(),
    )  # fmt: skip


def _parting(first: LayerDrift, agreeing: LayerDrift | None) -> str:
    before = f"; {agreeing.new} before it still agreed" if agreeing is not None else ""
    return f"The versions part at {first.kind} {first.new}{before}."


def _differences(measured: SandboxMeasurement) -> Iterator[Finding]:
    for item in measured.differences:
        epsilon = is_epsilon(item)
        yield Finding(
            GATE, "norm-epsilon" if epsilon else "built-differently",
            f"{measured.encoder}.{item.what}", Outcome.WARN, item.new, item.old,
            "Restore the epsilon that the weights were trained with." if epsilon
            else "Check that this change was meant.",
        )  # fmt: skip


def _versions(measured: SandboxMeasurement) -> tuple[ExaminedVersion, ...]:
    return (measured.new,) if measured.old is None else (measured.old, measured.new)


def _metrics(measured: SandboxMeasurement) -> dict[str, float]:
    """Per precision, over the runtimes that compute it: share of items seen, and its bound."""
    metrics = {}
    for precision, traces in _genuine(measured).items():
        items = max(trace.items for trace in traces)
        seen = max(len(find_breakage(measured.new, trace).items) for trace in traces)
        name = precision.value
        metrics[f"{name}_nonfinite_items_share"] = seen / max(items, 1)
        metrics[f"{name}_nonfinite_items_upper_share"] = upper_share(seen, items)
    for trace, drifts in compared(measured):
        worst = max((item.linf for item in drifts if item.key and item.linf is not None), default=0)
        metrics[f"{trace.precision.value}_{trace.runtime}_layer_linf_drift"] = float(worst)
    return metrics
