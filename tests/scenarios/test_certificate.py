"""What was certified is what is deployed, and what was rolled back is not deployed by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.objects.folder import FolderStore
from tests.scenarios.small import SERVICE, Project
from tests.scenarios.stage import Stage
from validators.contracts.digest import Digest, hex_of

pytestmark = pytest.mark.slow


def certificate_of(stage: Stage) -> Digest:
    return Digest(stage.cli("review", "show", SERVICE, "1", "--json").document["certificate"])


def test_a_deployment_without_its_certificate_is_blocked(released: Stage) -> None:
    released.store.delete(certificate_of(released))
    ran = released.cli("deploy", SERVICE, "1", "--json")
    assert (ran.code, ran.document["status"]) == (3, "blocked")
    assert "certificate" in ran.document["error"]["what"]
    assert released.processes() == []


def test_a_certificate_that_was_changed_is_refused(released: Stage) -> None:
    name = hex_of(certificate_of(released))
    assert isinstance(released.store, FolderStore)
    path = next(Path(released.store.url.removeprefix("file://")).rglob(name))
    path.chmod(0o600)
    path.write_bytes(path.read_bytes().replace(b'"samples":', b'"sampled":'))
    ran = released.cli("deploy", SERVICE, "1", "--json")
    assert (ran.code, ran.document["status"]) == (1, "failed")
    assert released.processes() == []


def test_a_version_that_was_rolled_back_waits_for_people_again(
    released: Stage, project: Project
) -> None:
    project.edit(lambda document: document["slo"].update(soft_limit_ms=1300))
    assert released.release(project).code == 0
    back = released.cli("rollback", SERVICE, "--reason", "wrong answers", "--json")
    assert back.code == 0, back.document
    entries = len(released.ledger.entries(SERVICE))
    assert released.cli("rollback", SERVICE, "--reason", "once more", "--json").code == 0
    assert len(released.ledger.entries(SERVICE)) == entries  # nothing moved, nothing to record

    again = released.release(project, people=())
    assert (again.code, again.document["status"]) == (4, "awaiting-review")
    assert released.aliases()["champion"] == "1"
    released.cli("stop", SERVICE, "--json")
