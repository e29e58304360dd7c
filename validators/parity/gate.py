"""The parity gate. Pure: deviations in, a verdict out."""

from __future__ import annotations

from collections.abc import Iterator

from validators.contracts.engine import (
    TOLERANCES,
    Deviation,
    ParityRecord,
    Precision,
    Tolerance,
)
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude

GATE = "parity"


def assess_parity(
    record: ParityRecord,
    precision: Precision,
    tolerance: Tolerance | None = None,
    *,
    subject: str = "",
) -> Verdict:
    """Judge an engine against its source model.

    `tolerance` is the precision's own unless given; `subject` names encoder and backend in
    findings ("image on openvino"). NaN or infinity where the model is finite is a FAIL that nobody
    may waive; nothing measured is INCONCLUSIVE. Waivers quote one finding: one case and output.
    """
    limits = tolerance or TOLERANCES[precision]
    about = subject or record.host.name
    findings = [
        finding for item in record.deviations for finding in _judge(item, limits, precision, about)
    ]
    return conclude(
        GATE, findings, examined=len(record.deviations), metrics=_metrics(record.deviations)
    )


def _judge(
    item: Deviation, limits: Tolerance, precision: Precision, about: str
) -> Iterator[Finding]:
    subject = f"{about}, {item.case}, {item.output}"
    if item.nonfinite > 0:
        yield Finding(
            GATE, "nonfinite", subject, Outcome.FAIL, item.nonfinite, 0,
            f"Build in a wider precision than {precision.value}: these values overflowed or are "
            "undefined in the engine only.",
            waivable=False,
        )  # fmt: skip
        return  # the other figures say nothing about what is not finite
    if item.max_rel > limits.max_rel:
        yield Finding(
            GATE, "relative-difference", subject, Outcome.FAIL, item.max_rel, limits.max_rel,
            "Build in a wider precision, or raise gates.parity with a measured reason.",
        )  # fmt: skip
    if item.cosine_min < limits.cosine_min:
        yield Finding(
            GATE, "cosine", subject, Outcome.FAIL, item.cosine_min, limits.cosine_min,
            "Build in a wider precision: the engine's vectors point elsewhere.",
        )  # fmt: skip


def _metrics(deviations: tuple[Deviation, ...]) -> dict[str, float]:
    if not deviations:
        return {}
    return {
        "cases": len({item.case for item in deviations}),
        "max_rel": max(item.max_rel for item in deviations),
        "max_abs": max(item.max_abs for item in deviations),
        "cosine_min": min(item.cosine_min for item in deviations),
        "nonfinite": sum(item.nonfinite for item in deviations),
    }
