"""`assess_compatibility`: may a new version of an encoder take the place of the old one?

The words of the gate as outcomes: COMPATIBLE is PASS. ADAPTER is WARN until the map is fitted and
measured, then PASS. REINDEX is FAIL that an approved plan may waive, and WARN where this bundle
encodes its catalogue again. BLOCK is FAIL that nothing waives. `words` decides which one applies.
"""

from __future__ import annotations

from dataclasses import replace

from validators.compatibility.measured import (
    CompatibilityMeasurement,
    CompatibilityWord,
    Geometry,
    OutputDrift,
    SelfCheck,
    Spread,
)
from validators.compatibility.words import CompatibilitySettings, is_collapsed, word_of
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude

GATE = "compatibility"


def assess_compatibility(
    measured: CompatibilityMeasurement, settings: CompatibilitySettings
) -> Verdict:
    """Judge a new version against the one it replaces."""
    findings = [
        *(_broken(measured, drift) for drift in measured.outputs if drift.nonfinite_new > 0),
        *_drifts(measured, settings),
        *_static(measured),
        *_geometries(measured, settings),
    ]
    return conclude(GATE, findings, examined=_examined(measured), metrics=_metrics(measured))


def assess_first_version(
    check: SelfCheck, settings: CompatibilitySettings, *, champion_exists: bool
) -> Verdict:
    """Judge a version that replaces nothing: WARN "this run becomes the reference".

    Only while the registry has no champion: with one, not to have compared is an ERROR.
    """
    if champion_exists:
        finding = Finding(
            GATE, "not-compared", check.encoder, Outcome.ERROR, "no measurement",
            "a comparison with the champion",
            "Compare with the champion's encoder: a reference is made once.", waivable=False,
        )  # fmt: skip
        return conclude(GATE, [finding], examined=check.items)
    findings = [_reference(check)]
    if check.nonfinite > 0:
        findings.append(_nonfinite(check.encoder, check.nonfinite))
    for half in check.halves:
        for spread in (half.first, half.second):
            findings += _collapse(f"{check.encoder}.{half.output}", spread, settings)
        if half.across > settings.most_across:
            findings.append(
                Finding(
                    GATE, "halves-differ", f"{check.encoder}.{half.output}", Outcome.WARN,
                    half.across, settings.most_across,
                    "Mix the data: its two halves are of different kinds.",
                )
            )  # fmt: skip
    return conclude(GATE, findings, examined=check.items)


def _geometries(
    measured: CompatibilityMeasurement, settings: CompatibilitySettings
) -> list[Finding]:
    return [
        replace(finding, subject=f"{measured.encoder}.{geometry.output}")
        for geometry in measured.geometries
        for finding in _geometry(geometry, settings)
    ]


def _geometry(geometry: Geometry, settings: CompatibilitySettings) -> list[Finding]:
    word = word_of(geometry, settings)
    reused = word in (CompatibilityWord.ADAPTER, CompatibilityWord.REINDEX) and geometry.same_space
    return [*_judge(geometry, word, settings), *([_reused_name(geometry)] if reused else [])]


def _judge(
    geometry: Geometry, word: CompatibilityWord | None, settings: CompatibilitySettings
) -> list[Finding]:
    match word:
        case CompatibilityWord.COMPATIBLE:
            return []
        case CompatibilityWord.BLOCK:
            return _collapse(geometry.output, geometry.new_spread, settings)
        case CompatibilityWord.ADAPTER:
            return _adapter(geometry, settings)
        case CompatibilityWord.REINDEX:
            outcome = Outcome.WARN if settings.catalogue_reencoded else Outcome.FAIL
            return [_changed_space(geometry, settings, outcome)]
        case None:
            outcome = Outcome.WARN if settings.catalogue_reencoded else Outcome.INCONCLUSIVE
            return [_too_few(geometry, settings, outcome)]


def _adapter(geometry: Geometry, settings: CompatibilitySettings) -> list[Finding]:
    if settings.adapter_fitted:
        return []
    return [
        Finding(
            GATE, "adapter-needed", geometry.output, Outcome.WARN, _described(geometry),
            f"{settings.same_cosine} mean cosine as they are",
            "Fit the adapter from the new space to the old one, or encode the catalogue again.",
        )
    ]  # fmt: skip


def _changed_space(
    geometry: Geometry, settings: CompatibilitySettings, outcome: Outcome
) -> Finding:
    done = "Nothing: this bundle encodes its catalogue again. Encode vectors kept elsewhere too."
    todo = "Encode every stored vector with the new version; do not mix the two."
    return Finding(
        GATE, "reindex", geometry.output, outcome, _described(geometry),
        f"{settings.found_share} of items found, as they are or through a map",
        done if outcome is Outcome.WARN else todo,
    )  # fmt: skip


def _reused_name(geometry: Geometry) -> Finding:
    return Finding(
        GATE, "space-name-reused", geometry.output, Outcome.WARN, "another space",
        "one name for one space", "Give the new version's space a name of its own.",
    )  # fmt: skip


def _too_few(geometry: Geometry, settings: CompatibilitySettings, outcome: Outcome) -> Finding:
    return Finding(
        GATE, "too-few-items", geometry.output, outcome, geometry.items,
        f"a lower bound of {settings.found_share}",
        "Give the gate 11 items at least: fewer cannot show that the spaces agree.",
    )  # fmt: skip


def _described(geometry: Geometry) -> str:
    raw = "dimensions differ" if geometry.top1_hits is None else f"{geometry.top1_hits}"
    return (
        f"{raw} of {geometry.items} found as they are, {geometry.adapted_hits} of "
        f"{geometry.held_out} through a map, {geometry.overlap:.2f} of neighbours in common"
    )


def _broken(measured: CompatibilityMeasurement, drift: OutputDrift) -> Finding:
    return _nonfinite(f"{measured.encoder}.{drift.output}", drift.nonfinite_new)


def _nonfinite(subject: str, share: float) -> Finding:
    return Finding(
        GATE, "not-finite", subject, Outcome.FAIL, share, 0.0,
        "Take another version or precision: this one answers NaN or infinity.", waivable=False,
    )  # fmt: skip


def _drifts(measured: CompatibilityMeasurement, settings: CompatibilitySettings) -> list[Finding]:
    return [
        Finding(
            GATE, "linf-drift", f"{measured.encoder}.{drift.output}", Outcome.WARN,
            drift.linf_drift, settings.linf,
            "Check what reads this output: its scale has changed between the versions.",
        )
        for drift in measured.outputs
        if drift.linf_drift is not None and drift.linf_drift > settings.linf
    ]  # fmt: skip


def _static(measured: CompatibilityMeasurement) -> list[Finding]:
    changed = [
        Finding(
            GATE, "declared-differently", f"{measured.encoder}.{item.what}",
            Outcome.FAIL if item.what == "modality" else Outcome.WARN,
            item.new, item.old, "Check that whoever calls this encoder can do without the old.",
            waivable=item.what != "modality",
        )
        for item in measured.differences
    ]  # fmt: skip
    lost = [
        Finding(
            GATE, "output-lost", f"{measured.encoder}.{name}", Outcome.FAIL, "absent", name,
            "Keep the output, or release under another encoder name.",
        )
        for name in measured.lost_outputs
    ]  # fmt: skip
    return changed + lost


def _collapse(subject: str, spread: Spread, settings: CompatibilitySettings) -> list[Finding]:
    if not is_collapsed(spread, settings):
        return []
    return [
        Finding(
            GATE, "collapsed", subject, Outcome.FAIL,
            f"effective rank {spread.effective_rank:.2f}, distance {spread.distance_mean:.2g}",
            f"rank {settings.least_rank}, distance {settings.least_distance}",
            "Check the checkpoint and its preprocessing: all items get one vector.",
            waivable=False,
        )
    ]  # fmt: skip


def _reference(check: SelfCheck) -> Finding:
    return Finding(
        GATE, "no-predecessor", check.encoder, Outcome.WARN, f"version {check.version}",
        "an earlier version", "This run becomes the reference.",
    )  # fmt: skip


def _examined(measured: CompatibilityMeasurement) -> int:
    """Items of which something finite could be compared, or that showed a fault."""
    seen = any(
        drift.linf_drift is not None or drift.nonfinite_new > 0 for drift in measured.outputs
    )
    return measured.items if seen else 0


def _metrics(measured: CompatibilityMeasurement) -> dict[str, float]:
    metrics = {"items": float(measured.items)}
    for drift in measured.outputs:
        name = drift.output
        metrics[f"{name}_nonfinite_share"] = drift.nonfinite_new
        if drift.linf_drift is not None:
            metrics[f"{name}_linf_drift"] = drift.linf_drift
        if drift.cosine_mean is not None:
            metrics[f"{name}_cosine_mean"] = drift.cosine_mean
    for geometry in measured.geometries:
        name = geometry.output
        metrics[f"{name}_neighbour_overlap"] = geometry.overlap
        metrics[f"{name}_effective_rank"] = geometry.new_spread.effective_rank
        metrics[f"{name}_adapted_cosine_mean"] = geometry.adapted_cosine_mean
        if geometry.top1_hits is not None:
            metrics[f"{name}_top1_share"] = geometry.top1_hits / max(geometry.items, 1)
        if geometry.held_out:
            metrics[f"{name}_adapted_top1_share"] = geometry.adapted_hits / geometry.held_out
    return metrics
