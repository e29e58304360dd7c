from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.digest import digest_bytes
from validators.contracts.engine import (
    TOLERANCES,
    Deviation,
    HostIdentity,
    ParityRecord,
    Precision,
    Tolerance,
)
from validators.contracts.verdict import Outcome, Waiver, apply_waivers
from validators.parity import assess_parity

HOST = HostIdentity("cpu", "x86_64-avx2", ("avx2",))


def _record(*deviations: Deviation) -> ParityRecord:
    return ParityRecord(HOST, "torch", digest_bytes(b""), deviations)


def _deviation(
    max_rel: float = 0.0, cosine_min: float = 1.0, nonfinite: int = 0, case: str = "between 0"
) -> Deviation:
    return Deviation(case, "features", max_rel, max_rel, cosine_min, nonfinite)


@pytest.mark.parametrize(
    ("deviation", "codes"),
    [
        (_deviation(), []),
        (_deviation(max_rel=1e-3, cosine_min=0.9999), []),  # at the limit is within it
        (_deviation(max_rel=1.1e-3), ["relative-difference"]),
        (_deviation(cosine_min=0.9998), ["cosine"]),
        (_deviation(max_rel=1.0, cosine_min=0.5), ["relative-difference", "cosine"]),
        (_deviation(nonfinite=1), ["nonfinite"]),
        (_deviation(max_rel=1.0, nonfinite=3), ["nonfinite"]),
    ],
)
def test_each_figure_has_its_limit(deviation: Deviation, codes: list[str]) -> None:
    verdict = assess_parity(_record(deviation), Precision.FP32, subject="image on openvino")
    assert [finding.code for finding in verdict.findings] == codes
    assert verdict.outcome is (Outcome.FAIL if codes else Outcome.PASS)
    for finding in verdict.findings:
        assert finding.subject == "image on openvino, between 0, features"
        assert finding.remedy


def test_nothing_measured_is_inconclusive() -> None:
    assert assess_parity(_record(), Precision.FP32).outcome is Outcome.INCONCLUSIVE


def test_one_bad_case_among_good_ones_fails_and_is_named() -> None:
    record = _record(_deviation(), _deviation(max_rel=0.5, case="profile 1 maximum"))
    verdict = assess_parity(record, Precision.INT8)
    assert [finding.subject for finding in verdict.findings] == [
        "x86_64-avx2, profile 1 maximum, features"
    ]
    assert dict(verdict.metrics)["max_rel"] == 0.5


@pytest.mark.parametrize(
    ("deviation", "waived"), [(_deviation(max_rel=0.5), True), (_deviation(nonfinite=1), False)]
)
def test_a_difference_may_be_waived_and_a_nan_may_not(deviation: Deviation, waived: bool) -> None:
    verdict = assess_parity(_record(deviation), Precision.FP32)
    waivers = [Waiver(item.name, "ada", "measured", 10.0) for item in verdict.findings]
    outcome = apply_waivers(verdict, waivers, now_s=1.0).outcome
    assert outcome is (Outcome.WARN if waived else Outcome.FAIL)


@given(
    max_rel=st.floats(0, 1),
    cosine=st.floats(-1, 1),
    precision=st.sampled_from(list(Precision)),
    widened=st.floats(0, 1),
)
def test_a_wider_tolerance_never_turns_a_pass_into_a_fail(
    max_rel: float, cosine: float, precision: Precision, widened: float
) -> None:
    record = _record(_deviation(max_rel, cosine))
    base = TOLERANCES[precision]
    wider = Tolerance(base.max_rel + widened, base.cosine_min - widened)
    assert assess_parity(record, precision, wider).outcome <= (
        assess_parity(record, precision).outcome
    )
