"""The measured figures of two spaces by name, bounds beside values, and what the words cost."""

from __future__ import annotations

from validators.compatibility.adapters import AdapterMeasurement
from validators.compatibility.estimates import Estimate
from validators.compatibility.measured import CompatibilityMeasurement, Geometry
from validators.compatibility.words import CompatibilitySettings


def space_metrics(
    measured: CompatibilityMeasurement, settings: CompatibilitySettings
) -> dict[str, float]:
    """Every figure of every embedding, bounds beside values, and what the words cost."""
    metrics = {
        "encode_old_ms": measured.encode_old_ms,
        "encode_new_ms": measured.encode_new_ms,
        "reindex_s_per_1000": reindex_s(measured.encode_new_ms, 1000),
    }
    if settings.stored_items is not None:
        metrics["reindex_s"] = reindex_s(measured.encode_new_ms, settings.stored_items)
    for geometry in measured.geometries:
        for name, value in _figures(geometry):
            metrics[f"{geometry.output}_{name}"] = value
        record = settings.adapter(geometry.output)
        if record is not None:
            for name, value in _adapter_figures(record.measured):
                metrics[f"{geometry.output}_adapter_{name}"] = value
    return metrics


def reindex_s(encode_ms: float, items: int) -> float:
    """What it takes to encode so many items again, one after the other."""
    return encode_ms * items / 1e3


def _figures(geometry: Geometry) -> list[tuple[str, float]]:
    estimates: list[tuple[str, Estimate | None]] = [
        ("cosine", geometry.cosine),
        ("rank_correlation", geometry.rank_correlation),
        ("neighbour_overlap", geometry.overlap),
        ("kept_share", geometry.kept),
        ("adapted_kept_share", geometry.adapted),
        ("negative_flips_mixed", geometry.flips_mixed),
        ("negative_flips_reindexed", geometry.flips_reindexed),
    ]
    for item in geometry.retrievals:
        pair = f"{item.queries}_on_{item.index}"
        estimates.append((f"recall_at_1_{pair}", item.first))
        estimates.append((f"recall_at_{geometry.neighbours}_{pair}", item.within))
    figures = [
        (f"{name}{bound}", value)
        for name, estimate in estimates
        if estimate is not None
        for bound, value in (
            ("", estimate.value), ("_low", estimate.low), ("_high", estimate.high),
        )
    ]  # fmt: skip
    return [
        *figures,
        ("adapted_cosine", geometry.adapted_cosine),
        ("effective_rank", geometry.new_spread.effective_rank),
        ("items", float(geometry.items)),
        ("duplicates", float(geometry.duplicates)),
        ("left_out", float(geometry.left_out_old + geometry.left_out_new)),
        ("views", float(geometry.views)),
    ]


def _adapter_figures(found: AdapterMeasurement) -> list[tuple[str, float]]:
    return [
        ("kept_share", found.kept.value),
        ("kept_share_low", found.kept.low),
        ("recall_at_1", found.first.value),
        ("recall_lost", max(found.old_first.value - found.first.value, 0.0)),
        ("negative_flips", found.flips.value),
        ("cosine", found.cosine.value),
        ("latency_ms", found.latency_ms),
        ("held_out_pairs", float(found.held_out)),
    ]
