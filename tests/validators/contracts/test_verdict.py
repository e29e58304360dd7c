from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.digest import digest_bytes
from validators.contracts.errors import Blocked, Undecided
from validators.contracts.verdict import (
    Evidence,
    Finding,
    GatePolicy,
    Outcome,
    Verdict,
    Waiver,
    apply_waivers,
    conclude,
    fold,
    require_pass,
)

NOW_S = 1_000.0
outcomes = st.sampled_from(Outcome)
findings = st.builds(
    Finding,
    gate=st.just("gate"),
    code=st.sampled_from(["a", "b", "c"]),
    subject=st.sampled_from(["x", "y"]),
    outcome=outcomes,
    measured=st.just(1.0),
    limit=st.just(0.5),
    remedy=st.just("Do it."),
    waivable=st.booleans(),
)


def finding(outcome: Outcome, *, code: str = "rule", waivable: bool = True) -> Finding:
    return Finding("gate", code, "subject", outcome, 2.0, 1.0, "Fix it.", waivable)


def waiver(name: str = "gate/rule/subject", until_s: float = NOW_S + 1) -> Waiver:
    return Waiver(name, "ada", "known", until_s)


def test_the_order_is_pass_warn_inconclusive_error_fail() -> None:
    assert [item.name for item in sorted(Outcome)] == [
        "PASS", "WARN", "INCONCLUSIVE", "ERROR", "FAIL",
    ]  # fmt: skip


@given(st.lists(outcomes, min_size=1))
def test_folding_gives_a_member_that_none_exceeds(items: list[Outcome]) -> None:
    worst = fold(items)
    assert worst in items
    assert all(item <= worst for item in items)


@given(st.lists(outcomes), st.lists(outcomes))
def test_folding_in_parts_is_folding_the_whole(left: list[Outcome], right: list[Outcome]) -> None:
    parts = [item for item in (fold(left), fold(right)) if item is not None]
    assert fold(parts) == fold(left + right) == fold(right + left)


@given(outcomes, outcomes)
def test_any_two_outcomes_are_ordered(one: Outcome, other: Outcome) -> None:
    assert (one < other) + (other < one) + (one is other) == 1
    assert (one <= other) == (not other < one)


@given(st.lists(findings), st.integers(1, 100))
def test_a_verdict_is_the_worst_of_its_findings(items: list[Finding], examined: int) -> None:
    verdict = conclude("gate", items, examined=examined)
    assert verdict.outcome == (fold(item.outcome for item in items) or Outcome.PASS)
    assert verdict.findings == tuple(items)


@given(st.lists(findings), st.integers(-3, 0))
def test_what_was_not_measured_is_never_a_pass(items: list[Finding], examined: int) -> None:
    verdict = conclude("gate", items, examined=examined)
    assert verdict.outcome >= Outcome.INCONCLUSIVE
    assert verdict.findings[-1].code == "nothing-measured"


@given(st.lists(findings), st.lists(st.sampled_from(["gate/a/x", "gate/b/y", "gate/c/z"])))
def test_a_waiver_lowers_named_waivable_findings_and_nothing_else(
    items: list[Finding], names: list[str]
) -> None:
    before = conclude("gate", items, examined=1)
    after = apply_waivers(before, [waiver(name) for name in names], NOW_S)
    assert len(after.findings) == len(before.findings)
    for old, new in zip(before.findings, after.findings, strict=True):
        lowered = old.waivable and old.name in names and old.outcome > Outcome.WARN
        assert new.outcome is (Outcome.WARN if lowered else old.outcome)
        assert new.name == old.name
    assert after.outcome <= before.outcome
    assert after.outcome == (fold(item.outcome for item in after.findings) or Outcome.PASS)


@pytest.mark.parametrize(
    ("given_waiver", "of", "outcome"),
    [
        (waiver(), finding(Outcome.FAIL), Outcome.WARN),
        (waiver(until_s=NOW_S), finding(Outcome.FAIL), Outcome.FAIL),
        (waiver(), finding(Outcome.FAIL, waivable=False), Outcome.FAIL),
        (waiver("gate/other/subject"), finding(Outcome.FAIL), Outcome.FAIL),
        (waiver("gate/rule"), finding(Outcome.FAIL), Outcome.FAIL),
        (waiver(), finding(Outcome.ERROR), Outcome.WARN),
        (waiver(), finding(Outcome.PASS), Outcome.PASS),
    ],
    ids=["in force", "expired", "not waivable", "another", "a prefix", "an error", "nothing"],
)
def test_a_waiver_holds_for_one_finding_until_its_end(
    given_waiver: Waiver, of: Finding, outcome: Outcome
) -> None:
    verdict = conclude("gate", [of], examined=1)
    assert apply_waivers(verdict, [given_waiver], NOW_S).outcome is outcome


def test_one_waived_finding_does_not_hide_another() -> None:
    verdict = conclude(
        "gate", [finding(Outcome.FAIL), finding(Outcome.FAIL, code="second")], examined=1
    )
    assert apply_waivers(verdict, [waiver()], NOW_S).outcome is Outcome.FAIL


def test_a_waived_finding_says_who_waived_it_and_why() -> None:
    verdict = conclude("gate", [finding(Outcome.FAIL)], examined=1)
    (waived,) = apply_waivers(verdict, [waiver()], NOW_S).findings
    assert "ada" in waived.remedy
    assert "known" in waived.remedy


@given(st.lists(findings), outcomes)
def test_a_policy_stops_its_outcome_and_all_that_are_worse(
    items: list[Finding], stops_at: Outcome
) -> None:
    verdict = conclude("gate", items, examined=1)
    assert GatePolicy(stops_at).stops(verdict) == (stops_at <= verdict.outcome)


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (Outcome.PASS, None),
        (Outcome.WARN, None),
        (Outcome.INCONCLUSIVE, Undecided),
        (Outcome.ERROR, Undecided),
        (Outcome.FAIL, Blocked),
    ],
)
def test_a_stop_is_blocked_or_undecided_and_names_the_worst_finding(
    outcome: Outcome, error: type[Exception] | None
) -> None:
    verdict = conclude("gate", [finding(Outcome.WARN, code="mild"), finding(outcome)], examined=1)
    if error is None:
        require_pass(verdict, GatePolicy())
        return
    with pytest.raises(error, match="gate/rule/subject") as caught:
        require_pass(verdict, GatePolicy())
    assert getattr(caught.value, "remedy", "") == "Fix it."


def test_a_stop_names_what_nobody_can_waive_before_what_somebody_can() -> None:
    waivable, fixed = (finding(Outcome.FAIL, code=code) for code in ("waivable", "fixed"))
    fixed = dataclasses.replace(fixed, waivable=False)
    for findings in ([waivable, fixed], [fixed, waivable]):
        with pytest.raises(Blocked, match="gate/fixed"):
            require_pass(conclude("gate", findings, examined=1), GatePolicy())


def test_evidence_is_added_not_replaced() -> None:
    verdict = Verdict("gate", Outcome.PASS)
    first, second = (Evidence(name, digest_bytes(b"")) for name in ("a.json", "b.json"))
    assert verdict.with_evidence(first).with_evidence(second).evidence == (first, second)
