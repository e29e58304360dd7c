"""Whether a version was fed what its weights expect: named faults, or none that can be shown.

Two kinds of evidence. The two versions' *tensors* of the same raw items show what differs between
their preprocessings: declared, maybe meant, so it warns. The *models*, run on what another
convention would have made of the same items, show that one of them restores the agreement with the
old version: then the declared preprocessing is wrong, and that blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from validators.compatibility.estimates import Estimate
from validators.contracts.verdict import Finding, Outcome

GATE = "compatibility"

_ALIKE = 0.02
"""Agreements nearer than this are the same."""


@dataclass(frozen=True, slots=True)
class TriedInput:
    """One other way to feed a version, and what it does to the agreement of the two.

    `agreement` is the mean, over items, of the shares of common neighbours and equal first classes;
    `gain` the mean difference to the input as declared, its interval widened for the number of ways
    that were tried (Bonferroni). `confidence`: mean largest class probability of the version so
    fed, None without class scores.
    """

    code: str
    says: str
    remedy: str
    agreement: Estimate
    gain: Estimate
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class InputCheck:
    """One encoder's two versions, the one as declared and the other in every way that is known.

    `changed` are ways to feed the new version; `reverted` the same ways for the old one, the new
    one as declared.
    """

    encoder: str
    items: int
    declared: Estimate
    changed: tuple[TriedInput, ...]
    reverted: tuple[TriedInput, ...] = ()
    confidence_old: float | None = None
    confidence_new: float | None = None


@dataclass(frozen=True, slots=True)
class InputSettings:
    """What it takes to accuse: a gain whose lower bound is `gain`, to `agreement` at least.

    `fine` is the agreement from which nothing is looked for.
    """

    gain: float = 0.05
    agreement: float = 0.6
    fine: float = 0.95
    least_items: int = 12


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """What the two preprocessings do differently to the same raw items, and on how many."""

    tensor: str
    code: str
    says: str
    share: Estimate  # of items on which it explains the difference


def judge_inputs(check: InputCheck, settings: InputSettings | None = None) -> list[Finding]:
    """FAIL (nothing waives it) where a known mistake is shown; nothing where none is."""
    limits = settings or InputSettings()
    if check.declared.value >= limits.fine or check.items < limits.least_items:
        return []
    best = _shown(check.changed, limits)
    if best is None:
        return []
    old_at_fault = _shown(check.reverted, limits)
    if old_at_fault is not None and _old_is_worse_fed(check, best, old_at_fault):
        return [_old_fault(check, old_at_fault, limits)]
    return [
        Finding(
            GATE, "wrong-preprocessing", check.encoder, Outcome.FAIL,
            f"the new version's weights expect {best.says}: agreement with the old version "
            f"{check.declared.describe()} as declared, {best.agreement.describe()} so fed, "
            f"{best.gain.describe()} more",
            f"a gain above {limits.gain}", best.remedy, waivable=False,
        )
    ]  # fmt: skip


def describe_inputs(check: InputCheck, settings: InputSettings | None = None) -> str:
    """One sentence for people, whatever was found."""
    findings = judge_inputs(check, settings)
    if findings:
        return str(findings[0].measured)
    limits = settings or InputSettings()
    if check.declared.value >= limits.fine:
        return f"the versions agree as they are fed: {check.declared.describe()}"
    if check.items < limits.least_items:
        return f"{check.items} items are too few to tell: {limits.least_items} at least"
    return (
        f"no known convention explains it: agreement {check.declared.describe()} as declared, "
        f"{len(check.changed)} other ways tried"
    )


def judge_tensors(encoder: str, differences: Sequence[TensorDifference]) -> list[Finding]:
    """WARN, by name: a declared difference may be meant."""
    return [
        Finding(
            GATE, f"input-{item.code}", f"{encoder}.{item.tensor}", Outcome.WARN,
            f"{item.says} ({item.share.describe()} of items)", "the same input",
            "Check that the new version was trained on this.",
        )
        for item in differences
    ]  # fmt: skip


def input_metrics(check: InputCheck) -> dict[str, float]:
    """The figures behind the answer."""
    metrics = {"input_agreement": check.declared.value, "inputs_tried": float(len(check.changed))}
    best = max(check.changed, key=lambda item: item.gain.value, default=None)
    if best is not None:
        metrics["input_best_agreement"] = best.agreement.value
        metrics["input_best_gain"] = best.gain.value
        metrics["input_best_gain_low"] = best.gain.low
    return metrics


def _shown(tried: Sequence[TriedInput], limits: InputSettings) -> TriedInput | None:
    able = [
        item
        for item in tried
        if item.gain.low > limits.gain and item.agreement.value >= limits.agreement
    ]
    return max(able, key=lambda item: item.agreement.value, default=None)


def _old_is_worse_fed(check: InputCheck, new: TriedInput, old: TriedInput) -> bool:
    """Either change makes the two agree alike: the version that grows surer was fed wrongly.

    Where one change helps more, or without class scores on both sides, the old version stays the
    reference.
    """
    if old.agreement.value < new.agreement.value - _ALIKE:
        return False
    figures = (new.confidence, check.confidence_new, old.confidence, check.confidence_old)
    if any(item is None for item in figures):
        return False
    new_fed, new_now, old_fed, old_now = (float(item or 0.0) for item in figures)
    return new_fed < new_now and old_fed > old_now


def _old_fault(check: InputCheck, best: TriedInput, limits: InputSettings) -> Finding:
    return Finding(
        GATE, "old-preprocessing-wrong", check.encoder, Outcome.WARN,
        f"the old version's weights expect {best.says}: agreement with the new version "
        f"{check.declared.describe()} as declared, {best.agreement.describe()} so fed",
        f"a gain above {limits.gain}",
        "Encode what the old version has stored again: it was fed wrongly, the new one is not.",
    )  # fmt: skip
