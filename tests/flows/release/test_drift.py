"""A release's data beside the champion's: the verdict, its pictures, and who measured them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows.home import Home
from flows.journal import Journal
from flows.release.drift import check_drift
from flows.release.run import Baseline, Release
from flows.release.values import Learned, ReleaseOptions, ReleaseRecord
from flows.workspace import Workspace
from tests.scenarios.small import SERVICE, Project
from tests.validators.contracts.test_digest import BUNDLE
from tests.validators.drift.windows import OTHER_ORIGIN, embedded, make_window
from validators.contracts.digest import Digest, digest_bytes
from validators.contracts.errors import Undecided
from validators.contracts.pipeline_file import parse_pipeline
from validators.contracts.verdict import Outcome, Verdict
from validators.drift.window import DriftWindow
from validators.drift.window_file import write_window
from validators.rehearsal.verdict import PairScores

GONE = digest_bytes(b"removed by retention")


def window(seed: int, **change: Any) -> DriftWindow:
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(80, 6))
    return make_window({"x": generator.normal(size=80)}, {"image": embedded(vectors, **change)})


@dataclass
class Stage:
    release: Release

    def check(self, reference: DriftWindow | None, current: DriftWindow) -> Verdict:
        store = self.release.workspace.store
        passed = Verdict("recall", Outcome.PASS)
        now = store.put(write_window(current))
        learned = Learned((), (), now, PairScores((), ()), passed)
        record = None if reference is None else self._record(store.put(write_window(reference)))
        baseline = Baseline(None, champion_exists=reference is not None)
        check_drift.fn(self.release, learned, ({}, {}), record, baseline)
        return self.release.verdicts["drift"]

    def _record(self, kept: Digest) -> ReleaseRecord:
        bundle = self.release.workspace.store.put(BUNDLE.document())
        return ReleaseRecord(bundle, GONE, None, GONE, GONE, GONE, kept, GONE, GONE, GONE)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    project = Project(tmp_path / "project")
    pipeline = parse_pipeline(project.pipeline.read_text())
    workspace = Workspace(Home(tmp_path / "home"))
    journal = Journal(workspace.store)
    return Stage(Release(workspace, pipeline, project.folder, ReleaseOptions("olga"), journal))


def test_the_first_release_becomes_the_reference(stage: Stage) -> None:
    verdict = stage.check(None, window(1))
    assert [item.code for item in verdict.findings] == ["first-release"]


def test_the_very_same_data_pass_and_are_not_drawn(stage: Stage) -> None:
    verdict = stage.check(window(1), window(1))
    assert verdict.outcome is Outcome.PASS
    assert [item.name for item in verdict.evidence] == ["drift.json"]


@pytest.mark.slow
def test_other_data_are_drawn_beside_the_champion_s(stage: Stage) -> None:
    verdict = stage.check(window(1), window(2))
    assert verdict.outcome is Outcome.PASS
    names = [item.name for item in verdict.evidence]
    assert names == ["drift-report.json", "drift-report.html", "drift.json"]
    page = stage.release.workspace.store.get(verdict.evidence[1].digest)
    folder = stage.release.workspace.home.root / "evidence" / SERVICE
    assert (folder / "drift-report.html").read_bytes() == page
    assert b"<html" in page[:4000]


@pytest.mark.slow
def test_a_picture_that_cannot_be_drawn_never_decides(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_windows: object, **_options: object) -> None:
        raise RuntimeError("a library broke")

    reporting = importlib.import_module("validators.drift.report")
    monkeypatch.setattr(reporting, "render_report", fail)
    verdict = stage.check(window(1), window(2))
    assert verdict.outcome is Outcome.WARN
    (finding,) = verdict.findings
    assert (finding.code, finding.measured) == ("report-not-rendered", "RuntimeError")
    assert "p.x" in dict(verdict.metrics)


def test_another_encoder_s_window_is_refused_where_its_data_are_gone(stage: Stage) -> None:
    with pytest.raises(Undecided) as refused:
        stage.check(window(1, origin=OTHER_ORIGIN), window(2))
    assert refused.value.where == "drift/other-encoder/embedding.image"
