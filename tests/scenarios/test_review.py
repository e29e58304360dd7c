"""A release that people decide: it waits, deploys when two agreed, and never after a no."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scenarios.small import SERVICE, Project
from tests.scenarios.stage import AUTHOR, Stage, outcomes
from tests.scenarios.warm import Ran

pytestmark = pytest.mark.slow

VERSION = "2"


@pytest.fixture(scope="module")
def waiting(
    stage: Stage, first_release: tuple[Ran, Ran], tmp_path_factory: pytest.TempPathFactory
) -> Ran:
    """A second version, released for review only."""
    stage.restore("released")
    project = Project(tmp_path_factory.mktemp("waiting") / "project")
    project.edit(lambda document: document["slo"].update(soft_limit_ms=1400))
    ran = stage.release(project, people=())
    stage.keep("waiting")
    return ran


@pytest.fixture
def reviewed(stage: Stage, waiting: Ran) -> Iterator[Stage]:
    stage.restore("waiting")
    yield stage
    stage.clear()


def decide(stage: Stage, verb: str, person: str) -> Ran:
    given = ("--as", person, "--reason", "looked at the findings", "--json")
    return stage.cli("review", verb, SERVICE, VERSION, *given)


def test_without_an_approval_the_release_waits_and_nothing_is_deployed(
    waiting: Ran, reviewed: Stage
) -> None:
    document = waiting.document
    assert (waiting.code, document["status"]) == (4, "awaiting-review")
    assert f"modalgate review approve {SERVICE} {VERSION}" in document["error"]["remedy"]
    assert f"modalgate deploy {SERVICE} {VERSION}" in document["error"]["remedy"]
    assert document["deployment"] is None
    assert document["model_version"] == {"name": SERVICE, "version": VERSION}
    assert outcomes(document)["review"] == "INCONCLUSIVE"
    assert reviewed.aliases() == {"champion": "1", "candidate": VERSION}
    assert reviewed.cli("deploy", SERVICE, VERSION, "--json").code == 4
    assert reviewed.processes() == []


def test_two_people_approve_and_deploy_brings_it_up(reviewed: Stage) -> None:
    own = decide(reviewed, "approve", AUTHOR)
    assert own.code == 1
    assert own.document["error"]["what"] == "nobody approves a bundle of their own"
    assert decide(reviewed, "approve", "ana").document["review"] == "awaiting"
    assert decide(reviewed, "approve", "ana").document["review"] == "awaiting"
    early = reviewed.cli("deploy", SERVICE, VERSION, "--json")
    assert (early.code, early.document["status"]) == (4, "awaiting-review")
    approved = decide(reviewed, "approve", "ben").document
    assert (approved["review"], approved["approved_by"]) == ("approved", ["ana", "ben"])
    assert approved["unattended"] is False

    deployed = reviewed.cli("deploy", SERVICE, "--json")
    assert deployed.code == 0, deployed.document
    assert deployed.document["deployment"]["stable"] == deployed.document["bundle"][7:19]
    assert [item["gate"] for item in deployed.document["verdicts"]] == ["rollout"]
    assert reviewed.aliases() == {"champion": VERSION, "rollback": "1"}
    entries = [(entry.actor, entry.action) for entry in reviewed.ledger.entries(SERVICE)]
    assert entries.count(("ana", "approve")) == 2  # of version 1, and once of version 2


@pytest.mark.heavy
def test_a_canary_that_nobody_uses_is_not_promoted(reviewed: Stage) -> None:
    """Unmeasured is never a pass: without traffic it waits a minute, then gives it all back."""
    for person in ("ana", "ben"):
        assert decide(reviewed, "approve", person).code == 0
    assert reviewed.cli("deploy", SERVICE, "1", "--json").code == 0
    ran = reviewed.cli("deploy", SERVICE, VERSION, "--no-probe", "--json")
    assert (ran.code, ran.document["status"]) == (5, "rolled-back")
    assert ran.document["verdicts"][0]["outcome"] == "INCONCLUSIVE"
    assert reviewed.evidence("rollout")["outcome"] == "INCONCLUSIVE"
    assert reviewed.aliases()["champion"] == "1"


def test_one_rejection_and_the_version_is_never_deployed(reviewed: Stage) -> None:
    assert decide(reviewed, "approve", "ana").code == 0
    assert decide(reviewed, "reject", "ben").document["review"] == "rejected"
    deployed = reviewed.cli("deploy", SERVICE, VERSION, "--json")
    assert (deployed.code, deployed.document["status"]) == (3, "blocked")
    shown = reviewed.cli("review", "show", SERVICE, VERSION, "--json").document
    assert shown["review"] == "rejected"
    assert {"contracts", "privacy", "rehearsal"} <= {item["gate"] for item in shown["verdicts"]}
    assert reviewed.processes() == []


def test_a_release_after_a_rejection_says_blocked(reviewed: Stage, project: Project) -> None:
    project.edit(lambda document: document["slo"].update(soft_limit_ms=1400))
    assert decide(reviewed, "reject", "ben").code == 0
    again = reviewed.release(project)
    assert (again.code, again.document["status"]) == (3, "blocked")
    assert again.document["deployment"] is None


def test_unattended_approval_is_refused_where_people_decide(
    released: Stage, project: Project
) -> None:
    before = released.inventory()
    project.edit(lambda document: document["deploy"]["review"].update(unattended=False))
    refused = released.release(project)
    assert (refused.code, refused.document["status"]) == (2, "bad-input")
    assert refused.document["error"]["where"] == "deploy.review.unattended"
    assert released.inventory() == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("review", "show", SERVICE, "9"), 2),
        (("review", "approve", SERVICE, "9", "--reason", "none"), 2),
        (("deploy", "nobody"), 2),
        (("rollback", SERVICE, "--reason", "nothing before"), 2),
    ],
)
def test_what_does_not_exist_is_refused_with_a_remedy(
    released: Stage, arguments: tuple[str, ...], code: int
) -> None:
    refused = released.cli(*arguments, "--json")
    assert refused.code == code
    assert refused.document["error"]["what"]
