from __future__ import annotations

import pytest

from validators.contracts.verdict import Outcome, Waiver, apply_waivers
from validators.privacy.gate import AuditCounts, PrivacyFind, assess_privacy

COUNTS = AuditCounts(3, (("image", 2), ("text", 3)))


def test_nothing_found_passes() -> None:
    verdict = assess_privacy([], COUNTS)
    assert verdict.outcome is Outcome.PASS
    assert dict(verdict.metrics)["media_examined"] == 5


def test_a_find_fails_and_names_sample_and_place() -> None:
    verdict = assess_privacy([PrivacyFind("cat", "image", "face", (10, 20, 30, 40))], COUNTS)
    (finding,) = verdict.findings
    assert verdict.outcome is Outcome.FAIL
    assert finding.name == "privacy/face-visible/cat@image:10-20-30-40"
    assert "pixels 10,20 to 30,40" in finding.remedy


def test_a_weak_find_warns() -> None:
    find = PrivacyFind("cat", "text", "name", (0, 9), strong=False)
    assert assess_privacy([find], COUNTS).outcome is Outcome.WARN


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        ("face", Outcome.WARN),
        ("name", Outcome.WARN),
        ("phone", Outcome.WARN),
        ("id-number", Outcome.FAIL),
        ("payment-number", Outcome.FAIL),
        ("voice", Outcome.FAIL),
    ],
)
def test_some_finds_cannot_be_waived(kind: str, left: Outcome) -> None:
    verdict = assess_privacy([PrivacyFind("cat", "text", kind, (1, 2))], COUNTS)
    waiver = Waiver(verdict.findings[0].name, "officer", "a drawing", until_s=10)
    assert apply_waivers(verdict, [waiver], now_s=0).outcome is left


def test_what_was_not_examined_is_inconclusive() -> None:
    counts = AuditCounts(1, (("image", 1),), (("text: script without a name detector", 2),))
    assert assess_privacy([], counts).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("counts", [AuditCounts(0, ()), AuditCounts(2, (("image", 0),))])
def test_nothing_examined_is_inconclusive(counts: AuditCounts) -> None:
    assert assess_privacy([], counts).outcome is Outcome.INCONCLUSIVE
