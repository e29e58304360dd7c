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
    `gain` the mean difference to the input as declared. `vectors` and `vectors_gain` likewise are
    the cosine of an item's two vectors, 0 where another item's old vector is nearer than its own;
    None where the versions share no space. `surer`: what an item's largest class probability gains,
    None without class scores. Intervals of gains are widened for the number of ways that were tried
    (Bonferroni).
    """

    code: str
    says: str
    remedy: str
    agreement: Estimate
    gain: Estimate
    surer: Estimate | None = None
    vectors: Estimate | None = None
    vectors_gain: Estimate | None = None

    @property
    def best(self) -> float:
        """The larger of both agreements."""
        return max(self.agreement.value, self.vectors.value if self.vectors else 0.0)


@dataclass(frozen=True, slots=True)
class InputCheck:
    """One encoder's two versions, the one as declared and the other in every way that is known.

    `changed` are ways to feed the new version; `reverted` the same ways for the old one, the new
    one as declared. `vectors` is as declared what it is in TriedInput.
    """

    encoder: str
    items: int
    declared: Estimate
    changed: tuple[TriedInput, ...]
    reverted: tuple[TriedInput, ...] = ()
    vectors: Estimate | None = None

    def is_fine(self, limits: InputSettings) -> bool:
        """Whether the versions agree as they are fed, in every way that can be told."""
        parts = [self.declared, *([self.vectors] if self.vectors else [])]
        return all(item.value >= limits.fine for item in parts)


@dataclass(frozen=True, slots=True)
class InputSettings:
    """What it takes to accuse: a gain whose lower bound is `gain`, to `agreement` at least.

    `fine` is the agreement from which nothing is looked for. `surer`: how much the largest class
    probability has to change, by the bound of its interval, to speak for either version.
    """

    gain: float = 0.05
    agreement: float = 0.6
    fine: float = 0.95
    surer: float = 0.02
    least_items: int = 12


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """What the two preprocessings do differently to the same raw items, and on how many."""

    tensor: str
    code: str
    says: str
    share: Estimate  # of items on which it explains the difference


def judge_inputs(check: InputCheck, settings: InputSettings | None = None) -> list[Finding]:
    """What stops where a known mistake is shown; nothing where none is.

    The old version is what people approved and serve, so the new one is accused: FAIL, which
    nothing waives. Where the same change to the old version helps as much, the two alone cannot
    show which of them is fed wrongly: it stops all the same, and somebody who knows may waive it.
    """
    limits = settings or InputSettings()
    if check.is_fine(limits) or check.items < limits.least_items:
        return []
    best = _shown(check, check.changed, limits)
    if best is None:
        return []
    other = _shown(check, check.reverted, limits)
    if other is None or other.best < best.best - _ALIKE or _grows_surer(best, limits):
        return [_new_fault(check, best, limits)]
    if _grows_surer(other, limits) and _grows_less_sure(best, limits):
        return [_old_fault(check, other, limits)]
    return [_new_fault(check, best, limits, tied=True)]


def describe_inputs(check: InputCheck, settings: InputSettings | None = None) -> str:
    """One sentence for people, whatever was found."""
    findings = judge_inputs(check, settings)
    if findings:
        return str(findings[0].measured)
    limits = settings or InputSettings()
    if check.is_fine(limits):
        return f"the versions agree as they are fed: {check.declared.describe()}"
    if check.items < limits.least_items:
        return f"{check.items} items are too few to tell: {limits.least_items} at least"
    return (
        f"no known convention explains it: agreement {check.declared.describe()} as declared, "
        f"{len(check.changed)} other ways tried"
    )


def judge_unexplained(
    check: InputCheck,
    differences: Sequence[TensorDifference],
    settings: InputSettings | None = None,
) -> list[Finding]:
    """WARN where an input is suspected and no known mistake is shown.

    Suspected: the preprocessings differ, or the versions agree less than one fed rightly would.
    """
    limits = settings or InputSettings()
    suspected = differences or check.declared.value < limits.agreement
    if not check.changed or not suspected or judge_inputs(check, limits):
        return []
    return [
        Finding(
            GATE, "input-unexplained", check.encoder, Outcome.WARN,
            describe_inputs(check, limits), f"a gain above {limits.gain}",
            "Compare the new version's preprocessing with what it was trained on.",
        )
    ]  # fmt: skip


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
    if check.vectors is not None:
        metrics["input_vectors_agreement"] = check.vectors.value
    if best is not None:
        metrics["input_best_agreement"] = best.agreement.value
        metrics["input_best_gain"] = best.gain.value
        metrics["input_best_gain_low"] = best.gain.low
    return metrics


def _shown(
    check: InputCheck, tried: Sequence[TriedInput], limits: InputSettings
) -> TriedInput | None:
    able = [
        item
        for item in tried
        if _is_clear(item.agreement, item.gain, limits) or _vectors_show(check, item, limits)
    ]
    return max(able, key=lambda item: item.agreement.value + item.best, default=None)


def _is_clear(agreement: Estimate, gain: Estimate, limits: InputSettings) -> bool:
    return gain.low > limits.gain and agreement.value >= limits.agreement


def _vectors_show(check: InputCheck, item: TriedInput, limits: InputSettings) -> bool:
    """Whether vectors come back to where they were, while neighbours and classes do not suffer."""
    return (
        item.vectors is not None
        and item.vectors_gain is not None
        and _is_clear(item.vectors, item.vectors_gain, limits)
        and item.agreement.value >= check.declared.value - _ALIKE
    )


def _grows_surer(item: TriedInput, limits: InputSettings) -> bool:
    return item.surer is not None and item.surer.low > limits.surer


def _grows_less_sure(item: TriedInput, limits: InputSettings) -> bool:
    return item.surer is not None and item.surer.high < -limits.surer


def _agreements(check: InputCheck, best: TriedInput) -> str:
    """As declared and so fed, by every agreement that was measured."""
    text = (
        f"{check.declared.describe()} as declared, {best.agreement.describe()} so fed, "
        f"{best.gain.describe()} more"
    )
    if check.vectors is None or best.vectors is None:
        return text
    return (
        f"{text}; of the vectors themselves {check.vectors.describe()} as declared, "
        f"{best.vectors.describe()} so fed"
    )


def _new_fault(
    check: InputCheck, best: TriedInput, limits: InputSettings, *, tied: bool = False
) -> Finding:
    says = f"the new version's weights expect {best.says}: agreement with the old version "
    doubt, remedy = "", best.remedy
    if tied:
        doubt = (
            "; the old version so fed agrees as well: one of the two versions is fed wrongly, "
            "these items cannot tell which, and the old one is approved"
        )
        remedy += " If the old version was fed wrongly all along, waive this by name."
    return Finding(
        GATE, "wrong-preprocessing", check.encoder, Outcome.FAIL,
        f"{says}{_agreements(check, best)}{doubt}", f"a gain above {limits.gain}", remedy,
        waivable=tied,
    )  # fmt: skip


def _old_fault(check: InputCheck, best: TriedInput, limits: InputSettings) -> Finding:
    """Surer classes are a hint and no proof (a network may be surer of what it never saw)."""
    return Finding(
        GATE, "old-preprocessing-wrong", check.encoder, Outcome.INCONCLUSIVE,
        f"one of the two versions is fed wrongly, by its classes the old one: its weights expect "
        f"{best.says}: agreement with the new version {_agreements(check, best)}",
        f"a gain above {limits.gain}",
        "Find out which version was trained on what it is fed. If the old one was not, waive this "
        "by name and encode what it has stored again; otherwise mend the new one's preprocessing.",
    )  # fmt: skip
