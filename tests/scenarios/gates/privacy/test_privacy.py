from __future__ import annotations

from pathlib import Path

import pytest

from infra.objects.folder import FolderStore
from services.deidentify.pipeline import deidentify
from services.deidentify.policy import load_policy
from services.deidentify.pseudonyms import ReleaseKey
from services.ingest.folder import ingest_folder
from services.privacy_audit.audit import audit
from tests.scenarios.gates.data_sets import build
from validators.contracts.verdict import GatePolicy, Outcome, Verdict
from validators.privacy.gate import assess_privacy

HERE = Path(__file__).parent
pytestmark = pytest.mark.slow


def judge(folder: Path, name: str, *, redact: bool = True) -> Verdict:
    quarantine, released = FolderStore(folder / "quarantine"), FolderStore(folder / "released")
    dataset = ingest_folder(build(HERE, name, folder / "set"), quarantine)
    if redact:
        dataset, _ = deidentify(
            dataset,
            quarantine=quarantine,
            released=released,
            policy=load_policy("gdpr-default"),
            key=ReleaseKey(b"k" * 32, "scenario"),
        )
    found = audit(dataset, released if redact else quarantine)
    return assess_privacy(found.finds, found.counts)


def test_a_face_a_name_a_number_and_a_voice_just_pass_when_redacted(tmp_path: Path) -> None:
    verdict = judge(tmp_path, "passes")
    assert verdict.outcome in (Outcome.PASS, Outcome.WARN)
    assert not GatePolicy().stops(verdict)


def test_a_name_that_the_redaction_missed_blocks_and_is_named_by_place(tmp_path: Path) -> None:
    verdict = judge(tmp_path, "blocks")
    assert verdict.outcome is Outcome.FAIL
    assert [item.name for item in verdict.findings] == ["privacy/name-visible/selfie@text:12-16"]


def test_the_same_data_unredacted_blocks_on_each_of_them(tmp_path: Path) -> None:
    verdict = judge(tmp_path, "passes", redact=False)
    failed = {item.code for item in verdict.findings if item.outcome is Outcome.FAIL}
    assert failed == {"face-visible", "name-visible", "phone-visible", "voice-visible"}
