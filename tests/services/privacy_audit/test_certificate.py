from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from infra.keys.file import FileSigner, open_verifier
from services.privacy_audit.audit import Audit
from services.privacy_audit.certificate import (
    Certificate,
    SignedCertificate,
    issue_certificate,
    verify_certificate,
)
from validators.contracts.digest import Digest, canonical_json, digest_bytes
from validators.contracts.errors import Refused
from validators.contracts.ports import Verifier
from validators.contracts.verdict import Waiver, apply_waivers
from validators.privacy.gate import AuditCounts, PrivacyFind, assess_privacy

POLICY, DATASET = digest_bytes(b"policy"), digest_bytes(b"data set")
COUNTS = AuditCounts(300, (("audio", 10), ("image", 300), ("text", 300)))
CLEAN = Audit((), COUNTS, ("dlib-hog 20", "names 1"))
FACE = PrivacyFind("cat", "image", "face", (1, 2, 3, 4))


@pytest.fixture
def signer(tmp_path: Path) -> FileSigner:
    return FileSigner.create_or_open(tmp_path / "key.pem")


@pytest.fixture
def verifier(tmp_path: Path, signer: FileSigner) -> Verifier:
    return open_verifier(signer.publish(tmp_path / "trusted"))


def issue(
    signer: FileSigner, audit: Audit = CLEAN, waiver: Waiver | None = None
) -> SignedCertificate:
    verdict = assess_privacy(audit.finds, audit.counts)
    verdict = apply_waivers(verdict, [waiver] if waiver else [], now_s=0)
    return issue_certificate(
        signer, policy=POLICY, dataset=DATASET, audit=audit, verdict=verdict,
        redacted=(("FACE", 3),),
    )  # fmt: skip


def verify(document: bytes, verifier: Verifier, dataset: Digest = DATASET) -> Certificate:
    return verify_certificate(document, verifier, dataset=dataset, policy=POLICY)


def test_a_certificate_says_what_was_looked_at_and_what_may_remain(
    signer: FileSigner, verifier: Verifier
) -> None:
    certificate = verify(issue(signer).document(), verifier)
    assert certificate.examined == COUNTS.examined
    assert certificate.redacted == (("FACE", 3),)
    assert certificate.detectors == CLEAN.detectors
    assert "at most 1.0%" in certificate.residual_risk[0], "three in three hundred"
    assert len(certificate.residual_risk) == 3


def test_the_same_audit_is_the_same_certificate(signer: FileSigner) -> None:
    assert issue(signer).document() == issue(signer).document()


def test_a_failed_audit_is_not_certified(signer: FileSigner) -> None:
    with pytest.raises(Refused):
        issue(signer, dataclasses.replace(CLEAN, finds=(FACE,)))


def test_an_empty_audit_is_not_certified(signer: FileSigner) -> None:
    with pytest.raises(Refused):
        issue(signer, dataclasses.replace(CLEAN, counts=AuditCounts(0, ())))


def test_a_waived_finding_is_written_into_the_certificate(signer: FileSigner) -> None:
    waiver = Waiver("privacy/face-visible/cat@image:1-2-3-4", "officer", "a drawing", until_s=9)
    signed = issue(signer, dataclasses.replace(CLEAN, finds=(FACE,)), waiver)
    assert signed.certificate.waived == (waiver.finding,)


def test_one_for_other_data_or_another_policy_is_refused(
    signer: FileSigner, verifier: Verifier
) -> None:
    document = issue(signer).document()
    other = digest_bytes(b"other")
    with pytest.raises(Refused, match="data set"):
        verify(document, verifier, dataset=other)
    with pytest.raises(Refused, match="policy"):
        verify_certificate(document, verifier, dataset=DATASET, policy=other)


def test_a_changed_certificate_is_refused(signer: FileSigner, verifier: Verifier) -> None:
    signed = issue(signer)
    better = dataclasses.replace(signed.certificate, samples=10_000)
    with pytest.raises(Refused):
        verify(canonical_json(dataclasses.replace(signed, certificate=better)), verifier)


def test_one_signed_by_a_stranger_is_refused(tmp_path: Path, verifier: Verifier) -> None:
    stranger = FileSigner.create_or_open(tmp_path / "stranger.pem")
    with pytest.raises(Refused):
        verify(issue(stranger).document(), verifier)


@pytest.mark.parametrize("document", [b"", b"{}", b"null"])
def test_what_is_no_certificate_is_refused(document: bytes, verifier: Verifier) -> None:
    with pytest.raises(Refused):
        verify(document, verifier)
