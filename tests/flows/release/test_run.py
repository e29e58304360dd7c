"""One run of a release records each verdict, and stops where the policy says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flows.home import Home
from flows.journal import Journal
from flows.release.run import Release
from flows.release.values import ReleaseOptions
from flows.retention import sweep
from flows.workspace import Workspace
from tests.scenarios.small import SERVICE, Project
from validators.contracts.errors import Blocked, Undecided
from validators.contracts.pipeline_file import parse_pipeline
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude


@pytest.fixture
def release(tmp_path: Path) -> Release:
    project = Project(tmp_path / "project")
    pipeline = parse_pipeline(project.pipeline.read_text())
    workspace = Workspace(Home(tmp_path / "home"))
    journal = Journal(workspace.store)
    return Release(workspace, pipeline, project.folder, ReleaseOptions("olga"), journal)


def verdict(gate: str, outcome: Outcome) -> Verdict:
    finding = Finding(gate, "rule", "thing", outcome, 2, 1, "Mend it.")
    return conclude(gate, [finding], examined=1)


@pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.WARN])
def test_a_verdict_above_the_bar_is_kept_in_order_with_its_evidence(
    release: Release, outcome: Outcome
) -> None:
    for gate in ("first", "second"):
        release.gate(verdict(gate, outcome))
    assert list(release.verdicts) == ["first", "second"]
    (evidence,) = release.verdicts["second"].evidence
    kept = json.loads(release.workspace.store.get(evidence.digest))
    shown = release.workspace.home.root / "evidence" / SERVICE / "second.json"
    assert kept == json.loads(shown.read_bytes())


@pytest.mark.parametrize(
    ("outcome", "error"),
    [(Outcome.FAIL, Blocked), (Outcome.ERROR, Undecided), (Outcome.INCONCLUSIVE, Undecided)],
)
def test_one_below_it_stops_the_release_and_keeps_all_verdicts_so_far(
    release: Release, outcome: Outcome, error: type[Exception]
) -> None:
    release.gate(verdict("first", Outcome.PASS))
    with pytest.raises(error):
        release.gate(verdict("second", outcome))
    store = release.workspace.store
    (name,) = store.references(f"blocked/{SERVICE}/")
    digest = store.reference(name)
    assert digest is not None
    assert [item["gate"] for item in json.loads(store.get(digest))] == ["first", "second"]
    assert sweep(store, dry_run=True).removed == ()


def test_the_same_stop_again_adds_nothing(release: Release) -> None:
    for _ in range(2):
        release.verdicts.clear()
        with pytest.raises(Blocked):
            release.gate(verdict("first", Outcome.FAIL))
    assert len(list(release.workspace.store.references("blocked/"))) == 1


def test_the_document_has_the_keys_of_an_answer(release: Release) -> None:
    release.gate(verdict("first", Outcome.WARN))
    document = release.document()
    assert set(document) >= {"service", "verdicts", "engines", "steps"}
    assert document["verdicts"][0]["outcome"] is Outcome.WARN
    assert release.unchanged  # nothing was done yet


def test_a_run_has_one_trace_and_another_run_another(release: Release) -> None:
    assert release.trace_id == release.trace_id and len(bytes.fromhex(release.trace_id)) == 16
    other = Release(
        release.workspace, release.pipeline, release.base, release.options, release.journal
    )
    assert other.trace_id != release.trace_id
