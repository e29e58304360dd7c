"""The precision of a release: measured once where the file leaves a choice, then recalled."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.home import Home
from flows.journal import Journal
from flows.release import precision
from flows.release.engines import EngineWork, build_engine
from flows.release.feeds import RealFeeds, real_feeds
from flows.release.precision import choose_precisions
from flows.release.run import Release
from flows.release.values import Exported, PrecisionChoice, ReleaseOptions
from flows.workspace import Workspace
from services.engines.manifest import open_manifest
from services.engines.precision import plan
from services.engines.precision.measure import ROUNDS, Pace
from services.engines.precision.measure_request import Machine
from tests.scenarios.small import SERVICE, Project
from tests.validators.precision.tables import row
from validators.contracts.dataset import Dataset, Media, Sample
from validators.contracts.engine import EngineState, Precision
from validators.contracts.errors import Undecided
from validators.contracts.pipeline_file import parse_pipeline
from validators.contracts.verdict import Outcome
from validators.precision.bandwidth import Layer
from validators.precision.words import PrecisionMeasurement

OPENVINO = [{"backend": "openvino", "deploy": True}]
MACHINE = Machine((Layer("one", 1, 1, 1),), ((1 << 16, 1e10),), ((Precision.FP32, 1e10),), 1.0)


class Choosing:
    """One state folder in which releases choose the image encoder's precision."""

    def __init__(self, folder: Path, wanted: str | list[str]) -> None:
        self.project = Project(folder / "project")
        self.project.edit(lambda file: file["encoders"]["image"].update(precision=wanted))
        self.project.edit(lambda file: file.update(backends=OPENVINO))
        self.workspace = Workspace(Home(folder / "home"))
        store = self.workspace.store
        media = self.project.folder / "data"
        self.clean = Dataset(
            tuple(
                Sample(row["id"], (Media("image", store.put_file(media / row["image"]),
                       "image/png"),), ())
                for row in self.project.rows
            )
        )  # fmt: skip
        release = self.release()
        entry = release.pipeline.encoder("image")
        model = self.project.folder / "models" / "image.onnx"
        self.exported = Exported(entry.contract, store.put_file(model))

    def release(self) -> Release:
        pipeline = parse_pipeline(self.project.pipeline.read_text())
        journal = Journal(self.workspace.store)
        options = ReleaseOptions("olga")
        return Release(self.workspace, pipeline, self.project.folder, options, journal)

    def choose(self) -> tuple[dict[str, PrecisionChoice], Release]:
        release = self.release()
        entries = [release.pipeline.encoder("image")]
        found = choose_precisions.fn(release, entries, {"image": self.exported}, self.clean)
        return found, release

    @property
    def evidence(self) -> dict[str, Any]:
        path = self.workspace.home.root / "evidence" / SERVICE / "precision-image.json"
        document: dict[str, Any] = json.loads(path.read_bytes())
        return document


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny model needs no long look, and its machine no measuring."""
    monkeypatch.setattr(precision, "PACE", Pace(budget_ms=20))
    monkeypatch.setattr(plan, "measure_machine", lambda bench: MACHINE)


@pytest.mark.heavy
@pytest.mark.usefixtures("brisk")
def test_a_choice_is_measured_kept_as_evidence_and_recalled(tmp_path: Path) -> None:
    choosing = Choosing(tmp_path, ["fp32", "bf16"])
    first, release = choosing.choose()
    verdict = release.verdicts["precision"]
    assert verdict.outcome <= Outcome.WARN
    assert verdict.evidence[0].name == "precision-image.json"
    document = choosing.evidence
    rows = {row["precision"]: row for row in document["table"]["measurements"]}
    assert set(rows) == {"fp32", "bf16"}
    assert len(rows["fp32"]["timings"][0]["rounds_ms"]) == ROUNDS
    assert document["table"]["real_items"] == len(choosing.clean.samples)
    assert document["chosen"] == first["image"].precision.value
    second, again = choosing.choose()
    assert second == first
    assert all(step.cached for step in again.journal.runs)


@pytest.mark.heavy
@pytest.mark.usefixtures("brisk")
def test_a_baked_choice_is_what_the_deployed_engine_is_compiled_from(tmp_path: Path) -> None:
    choosing = Choosing(tmp_path, "int8")
    release = choosing.release()
    entry, backend = release.pipeline.encoder("image"), release.pipeline.deploy_backend
    work = EngineWork(entry, choosing.exported, backend, choosing.clean)
    build, verdict = build_engine.fn(release, work)
    assert verdict is not None and verdict.outcome <= Outcome.WARN, verdict
    assert build.engine.state is EngineState.VERIFIED
    workspace = choosing.workspace
    sealed = workspace.store.get(build.engine.manifest)
    manifest = open_manifest(sealed, workspace.verifier)
    assert manifest.spec.precision is Precision.INT8
    assert manifest.spec.onnx != choosing.exported.onnx
    assert manifest.source == choosing.exported.onnx
    again, _ = build_engine.fn(choosing.release(), work)
    assert again.cached and again.engine == build.engine


@pytest.mark.parametrize("wanted", ["fp32", ["bf16"], "bf16"])
def test_one_precision_leaves_nothing_to_choose(tmp_path: Path, wanted: Any) -> None:
    choosing = Choosing(tmp_path, wanted)
    found, release = choosing.choose()
    assert found == {} and release.verdicts == {}


def test_what_could_not_be_decided_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was measured, as after a crash: the second look is a new one."""
    choosing = Choosing(tmp_path, ["fp32", "bf16"])
    looks: list[int] = []

    def no_engine(bench: Any, *rest: Any, **more: Any) -> plan.Built:
        looks.append(1)
        refused = [PrecisionMeasurement(p, refused="it crashed") for p in Precision]
        return plan.Built((), tuple(refused[:1]))

    monkeypatch.setattr(plan, "measure_machine", lambda bench: MACHINE)
    monkeypatch.setattr(plan, "build_candidates", no_engine)
    for _ in range(2):
        with pytest.raises(Undecided, match="precision"):
            choosing.choose()
    assert len(looks) == 2


@pytest.mark.parametrize(("transient", "looks"), [(True, 2), (False, 1)])
def test_a_choice_beside_a_candidate_that_was_killed_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transient: bool, looks: int
) -> None:
    """The release goes on with what was measured; the next one looks again."""
    choosing = Choosing(tmp_path, ["fp32", "bf16"])
    seen: list[int] = []
    built: Any = None  # nobody looks at it: the times stand in for its calls

    def one_engine(bench: Any, *rest: Any, **more: Any) -> tuple[PrecisionMeasurement, ...]:
        seen.append(1)
        bf16 = PrecisionMeasurement(Precision.BF16, refused="killed", transient=transient)
        return row(Precision.FP32, [1.0] * ROUNDS), bf16

    monkeypatch.setattr(plan, "measure_machine", lambda bench: MACHINE)
    monkeypatch.setattr(plan, "build_candidates", lambda *rest: plan.Built((built,), ()))
    monkeypatch.setattr(plan, "measure_candidates", one_engine)
    for _ in range(2):
        found, release = choosing.choose()
        assert found["image"].precision is Precision.FP32
        assert release.verdicts["precision"].outcome is Outcome.WARN
    assert len(seen) == looks


def test_calibration_and_judgement_share_no_item(tmp_path: Path) -> None:
    choosing = Choosing(tmp_path, ["fp32", "bf16"])
    release = choosing.release()
    entry = release.pipeline.encoder("image")
    feeds = real_feeds(release, choosing.clean, entry.contract, entry.profiles)
    assert len(feeds.items) == 40
    assert len(feeds.calibration) + len(feeds.held_out) == 40
    assert len(feeds.held_out) == 13
    judged = [id(feeds.items[at]) for at in feeds.held_out]
    assert not set(judged) & {id(item) for item in feeds.calibration}


def test_voices_that_are_not_released_give_nothing(tmp_path: Path) -> None:
    choosing = Choosing(tmp_path, ["fp32", "bf16"])
    release = choosing.release()
    entry = release.pipeline.encoder("image")
    contract = replace(entry.contract, modality="audio")
    assert real_feeds(release, choosing.clean, contract, entry.profiles) == RealFeeds()


@pytest.mark.parametrize(
    ("wanted", "backend", "needed"),
    [
        (["fp32", "bf16"], {}, True),
        ("auto", {}, True),
        ("bf16", {}, False),
        (["bf16"], {}, False),
        (["fp32", "bf16"], {"precision": "fp32"}, False),  # the backend's own word decides
    ],
)
def test_a_precision_is_measured_where_the_file_leaves_a_choice(
    tmp_path: Path, wanted: Any, backend: dict[str, Any], needed: bool
) -> None:
    project = Project(tmp_path / "project")
    project.edit(lambda file: file["encoders"]["image"].update(precision=wanted))
    project.edit(lambda file: file.update(backends=[{**OPENVINO[0], **backend}]))
    pipeline = parse_pipeline(project.pipeline.read_text())
    measured = [entry.name for entry in pipeline.encoders if pipeline.measures_precision(entry)]
    assert measured == (["image"] if needed else [])
