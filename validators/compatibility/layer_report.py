"""The evidence behind a verdict on layers: a table per trace, without times, which vary."""

from __future__ import annotations

from dataclasses import dataclass

from validators.compatibility.layer_verdict import LayerSettings, compared, find_breakage
from validators.compatibility.layers import Divergence, LayerDrift, first_divergence
from validators.compatibility.measured import StaticDifference
from validators.compatibility.sandboxed import ExaminedVersion, SandboxMeasurement
from validators.compatibility.shares import share_text
from validators.contracts.engine import Precision


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One layer of the new version, over all items."""

    name: str
    kind: str
    key: bool
    size: int
    linf: float
    mean: float
    variance: float
    nan: int
    inf: int
    masked: int


@dataclass(frozen=True, slots=True)
class TraceTable:
    """One trace of a version. `not_finite` is the share of items for people to read."""

    version: str
    runtime: str
    precision: Precision
    computed_in: Precision | None
    note: str
    not_finite: str
    layers: tuple[LayerRow, ...]


@dataclass(frozen=True, slots=True)
class DriftTable:
    """Both versions in one trace: every pair of layers, and where they part."""

    runtime: str
    precision: Precision
    parting: Divergence | None
    layers: tuple[LayerDrift, ...]


@dataclass(frozen=True, slots=True)
class LayerReport:
    """What was seen inside one encoder."""

    encoder: str
    items: int
    faults: tuple[str, ...]
    traces: tuple[TraceTable, ...]
    drifts: tuple[DriftTable, ...]
    differences: tuple[StaticDifference, ...]


def report_layers(
    measured: SandboxMeasurement, settings: LayerSettings | None = None
) -> LayerReport:
    """The document that a verdict on layers rests on: pure, so that it can be made again."""
    limits = (settings or LayerSettings()).limits
    versions = [version for version in (measured.old, measured.new) if version is not None]
    return LayerReport(
        measured.encoder,
        measured.items,
        tuple(f"{version.version}: {fault}" for version in versions for fault in version.faults),
        tuple(table for version in versions for table in _tables(version)),
        tuple(
            DriftTable(trace.runtime, trace.precision, first_divergence(drifts, limits), drifts)
            for trace, drifts in compared(measured)
        ),
        measured.differences,
    )


def _tables(version: ExaminedVersion) -> tuple[TraceTable, ...]:
    return tuple(
        TraceTable(
            version.version,
            trace.runtime,
            trace.precision,
            trace.computed_in,
            trace.note,
            share_text(len(find_breakage(version, trace).items), trace.items) if trace.ran else "",
            tuple(
                LayerRow(
                    layer.name, layer.kind, layer.key, layer.size, layer.linf, layer.mean,
                    layer.variance, layer.nan, layer.inf, layer.masked,
                )
                for layer in trace.layers
            ),
        )
        for trace in version.traces
    )  # fmt: skip
