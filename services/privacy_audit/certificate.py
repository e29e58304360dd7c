"""The certificate: which policy, which data, what was looked at with what, and what may remain.

It is issued only on a privacy verdict that passed, signed with a key held outside the data, and
demanded by whoever deploys: `verify_certificate` refuses one for other data or another policy.
"""

from __future__ import annotations

from dataclasses import dataclass

from services.privacy_audit.audit import Audit
from validators.contracts.digest import Digest, canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import Refused
from validators.contracts.ports import Signature, Signer, Verifier
from validators.contracts.verdict import Outcome, Verdict

CERTIFICATE_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is attested. No time stamp: the same audit of the same data is the same certificate."""

    format: int
    policy: Digest
    dataset: Digest  # of the de-identified data set
    outcome: Outcome  # of the privacy gate: PASS or WARN
    samples: int
    examined: tuple[tuple[str, int], ...]  # media by modality
    redacted: tuple[tuple[str, int], ...]  # redactions by kind
    waived: tuple[str, ...]  # findings that somebody answers for
    detectors: tuple[str, ...]
    residual_risk: tuple[str, ...]  # sentences


@dataclass(frozen=True, slots=True)
class SignedCertificate:
    certificate: Certificate
    signature: Signature

    def document(self) -> bytes:
        return canonical_json(self)


def issue_certificate(
    signer: Signer,
    *,
    policy: Digest,
    dataset: Digest,
    audit: Audit,
    verdict: Verdict,
    redacted: tuple[tuple[str, int], ...] = (),
) -> SignedCertificate:
    """Sign what the audit found. `verdict` is the privacy gate's, after waivers.

    Raises:
        Refused: the gate did not pass; there is nothing to certify.
    """
    if verdict.gate != "privacy" or verdict.outcome > Outcome.WARN:
        raise Refused(
            f"no certificate on a {verdict.gate} verdict of {verdict.outcome.value}",
            where=dataset,
            remedy="Remove what the privacy gate found, then audit again.",
        )
    certificate = Certificate(
        format=CERTIFICATE_FORMAT,
        policy=policy,
        dataset=dataset,
        outcome=verdict.outcome,
        samples=audit.counts.samples,
        examined=audit.counts.examined,
        redacted=redacted,
        waived=tuple(item.name for item in verdict.findings if item.remedy.startswith("Waived by")),
        detectors=audit.detectors,
        residual_risk=residual_risk(audit),
    )
    return SignedCertificate(certificate, signer.sign(canonical_json(certificate)))


def verify_certificate(
    document: bytes, verifier: Verifier, *, dataset: Digest, policy: Digest
) -> Certificate:
    """The certificate in `document`, if it holds for this data set and this policy.

    Raises:
        Refused: changed since it was signed, by no trusted key, or about something else.
    """
    signed = load(SignedCertificate, document, where="privacy certificate")
    certificate = signed.certificate
    verifier.verify(canonical_json(certificate), signed.signature)
    wanted = (
        ("format", certificate.format, CERTIFICATE_FORMAT),
        ("data set", certificate.dataset, dataset),
        ("policy", certificate.policy, policy),
    )
    for name, found, expected in wanted:
        if found != expected:
            raise Refused(
                f"the privacy certificate is for another {name}",
                where=f"{found} instead of {expected}",
                remedy="Run the privacy audit on the data set that is to be released.",
            )
    if certificate.outcome > Outcome.WARN:
        raise Refused("the privacy certificate is not of a passed audit", where=certificate.dataset)
    return certificate


def residual_risk(audit: Audit) -> tuple[str, ...]:
    """What may remain, in sentences: bounds where there is one, blind spots by name."""
    examined = dict(audit.counts.examined)
    sentences = []
    if pictures := examined.get("image", 0):
        sentences.append(
            f"Of {pictures} pictures, {_bound(pictures)} show a face that this detector would find "
            "(95 % confidence, rule of three); profiles, covered faces and faces under 40 pixels "
            "are not among them, nor is writing inside a picture."
        )
    if texts := examined.get("text", 0):
        sentences.append(
            f"Of {texts} texts, {_bound(texts)} show a name on the lists or a number that checks; "
            "rare names that stand alone, and who is meant by a description, are not among them."
        )
    if recordings := examined.get("audio", 0):
        sentences.append(
            f"Of {recordings} recordings only descriptors and keyed hashes are released; whoever "
            "holds the release key and a recording can tell whether it was in the data."
        )
    return tuple(sentences)


def _bound(count: int) -> str:
    return f"at most {min(1.0, 3 / count):.1%}"
