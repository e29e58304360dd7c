"""`assess_compatibility`: may a new version of an encoder take the place of the old one?

The words of the gate as outcomes: COMPATIBLE is PASS. ADAPTER is WARN until the map is fitted and
measured, then PASS. REINDEX is FAIL that an approved plan may waive, and WARN where this bundle
encodes its catalogue again. BLOCK is FAIL that nothing waives. `words` decides which one applies.
"""

from __future__ import annotations

from validators.compatibility.figures import space_metrics
from validators.compatibility.measured import CompatibilityMeasurement, OutputDrift, SelfCheck
from validators.compatibility.spaces import GATE, judge_spaces, judge_spread
from validators.compatibility.words import CompatibilitySettings
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude

__all__ = ["GATE", "assess_compatibility", "assess_first_version"]


def assess_compatibility(
    measured: CompatibilityMeasurement, settings: CompatibilitySettings
) -> Verdict:
    """Judge a new version against the one it replaces."""
    findings = [
        *(_broken(measured, drift) for drift in measured.outputs if drift.nonfinite_new > 0),
        *_drifts(measured, settings),
        *_static(measured),
        *judge_spaces(measured, settings),
    ]
    return conclude(
        GATE, findings, examined=_examined(measured), metrics=_metrics(measured, settings)
    )


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
            findings += judge_spread(f"{check.encoder}.{half.output}", spread, settings)
        if half.across > settings.most_across:
            findings.append(
                Finding(
                    GATE, "halves-differ", f"{check.encoder}.{half.output}", Outcome.WARN,
                    half.across, settings.most_across,
                    "Mix the data: its two halves are of different kinds.",
                )
            )  # fmt: skip
    return conclude(GATE, findings, examined=check.items)


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


def _metrics(
    measured: CompatibilityMeasurement, settings: CompatibilitySettings
) -> dict[str, float]:
    metrics = {"items": float(measured.items), **space_metrics(measured, settings)}
    for drift in measured.outputs:
        name = drift.output
        metrics[f"{name}_nonfinite_share"] = drift.nonfinite_new
        if drift.linf_drift is not None:
            metrics[f"{name}_linf_drift"] = drift.linf_drift
        if drift.cosine_mean is not None:
            metrics[f"{name}_cosine_mean"] = drift.cosine_mean
    return metrics
