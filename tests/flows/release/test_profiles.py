"""Planned profiles: from a recording, else from the data, recalled while nothing changes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.home import Home
from flows.journal import Journal
from flows.release.profiles import plan_profiles
from flows.release.run import Release
from flows.release.values import Exported, ReleaseOptions
from flows.workspace import Workspace
from services.engines.profiles.histogram import ShapeHistogram, tally
from services.engines.profiles.records import append_window
from tests.scenarios.small import SERVICE, Project
from validators.contracts.dataset import Dataset, Media, Sample
from validators.contracts.engine import ShapeProfile
from validators.contracts.pipeline import EncoderEntry
from validators.contracts.pipeline_file import parse_pipeline

DIMS = ("batch", "tokens")
TOP = {"ids": (4, 16), "mask": (4, 16)}
TEXTS = ("a red square on paper", "a blue circle", "a", "a red cross on pink paper", "a a a")


def plan_them(document: dict[str, Any]) -> None:
    text = document["encoders"]["text"]
    text["profiles"] = {"auto": {"count": 3}, "bounds": text["profiles"][0]}


class Planning:
    """One state folder in which releases plan the text encoder's profiles, one after another."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder / "project")
        self.project.edit(plan_them)
        self.workspace = Workspace(Home(folder / "home"))
        self.texts: tuple[str, ...] = TEXTS

    def again(self, *, modality: str = "text") -> tuple[EncoderEntry, Release]:
        pipeline = parse_pipeline(self.project.pipeline.read_text())
        store = self.workspace.store
        release = Release(
            self.workspace, pipeline, self.project.folder, ReleaseOptions("olga"), Journal(store)
        )
        entry = pipeline.encoder("text")
        spec = entry.contract.preprocess
        assets = (("tokenizer", store.put_file(self.project.folder / "models/tokenizer.json")),)
        contract = replace(entry.contract, preprocess=replace(spec, assets=assets))
        onnx = store.put_file(self.project.folder / "models" / "text.onnx")
        samples = tuple(
            Sample(f"s{at}", (Media(modality, store.put(text.encode()), "text/plain"),), ())
            for at, text in enumerate(self.texts)
        )
        exported, clean = Exported(contract, onnx), Dataset(samples)
        return plan_profiles.fn(release, entry, exported, clean), release

    def record(self, *windows: ShapeHistogram) -> None:
        path = self.workspace.home.recording(SERVICE, "text")
        for window in windows:
            path.write_bytes(append_window(path.read_bytes() if path.exists() else None, window))

    @property
    def evidence(self) -> dict[str, Any]:
        path = self.workspace.home.root / "evidence" / SERVICE / "profiles-text.json"
        document: dict[str, Any] = json.loads(path.read_bytes())
        return document


@pytest.fixture
def planning(tmp_path: Path) -> Planning:
    return Planning(tmp_path)


def window(*tokens: int, dims: tuple[str, ...] = DIMS) -> ShapeHistogram:
    return tally(dims, [dict.fromkeys(dims, 1) | {dims[-1]: size} for size in tokens])


def tops(profiles: tuple[ShapeProfile, ...]) -> list[tuple[int, ...]]:
    return [item.maximum for profile in profiles for item in profile.ranges if item.tensor == "ids"]


def test_without_a_recording_the_release_s_own_data_is_planned_for(planning: Planning) -> None:
    entry, release = planning.again()
    assert 2 <= len(entry.profiles) <= 3
    assert entry.profiles[-1].covers(TOP)
    found = planning.evidence
    assert (found["seen"], found["note"]) == ("data", "nothing was recorded")
    assert sum(item["count"] for item in found["histogram"]["counts"]) == len(TEXTS)
    assert found["plan"]["padded_work"] < found["one_maximal"]["padded_work"]
    (evidence,) = release.plans
    assert evidence.name == "profiles-text.json"
    assert json.loads(release.workspace.store.get(evidence.digest)) == found


def test_a_recording_is_planned_for_before_the_data(planning: Planning) -> None:
    planning.record(window(*[12] * 500, *[5] * 500))
    entry, _ = planning.again()
    assert tops(entry.profiles) == [(1, 5), (1, 12), (4, 16)]
    assert (planning.evidence["seen"], planning.evidence["windows"]) == ("recorded", 1)


def test_the_same_again_is_recalled_and_a_new_window_is_looked_at(planning: Planning) -> None:
    planning.record(window(*[12] * 500, *[5] * 500))
    first, release = planning.again()
    assert [step.cached for step in release.journal.runs] == [False]
    second, again = planning.again()
    assert [step.cached for step in again.journal.runs] == [True]
    assert (second, again.plans) == (first, release.plans)
    planning.record(window(*[9] * 5000))
    third, later = planning.again()
    assert [step.cached for step in later.journal.runs] == [False]
    assert (1, 9) in tops(third.profiles)


def test_a_few_probes_are_no_recording(planning: Planning) -> None:
    first, _ = planning.again()
    for _ in range(3):
        planning.record(window(*[12] * 300))
        second, later = planning.again()
    assert (second, planning.evidence["seen"]) == (first, "data")
    assert [step.cached for step in later.journal.runs] == [True]


@pytest.mark.parametrize("rare", [[], [4], [11, 7]], ids=str)
def test_a_window_that_would_change_little_leaves_profiles_and_evidence_as_they_are(
    planning: Planning, rare: list[int]
) -> None:
    planning.record(window(*[12] * 500, *[5] * 500))
    first, release = planning.again()
    planning.record(window(*[12] * 500, *[5] * 500, *rare))
    second, later = planning.again()
    assert (second.profiles, later.plans) == (first.profiles, release.plans)
    assert planning.evidence["windows"] == 2


def test_other_data_is_planned_for_anew(planning: Planning) -> None:
    planning.again()
    planning.texts = ("a red square on paper a red square on paper",) * 40
    entry, release = planning.again()
    assert [step.cached for step in release.journal.runs] == [False]
    assert (1, 12) in tops(entry.profiles)


@pytest.mark.parametrize(
    ("recording", "note"),
    [
        (b'{"format":1,"wind', "the recording was ignored: not a ShapeRecording document"),
        (append_window(None, window(9, dims=("frames",))), "it is over frames, and the contract"),
        (append_window(None, window(9, dims=("tokens", "batch"))), "it is over tokens, batch"),
        (append_window(None, window()), "fewer than 1000 requests"),
    ],
)
def test_a_recording_of_no_use_is_ignored_and_said_so(
    planning: Planning, recording: bytes, note: str
) -> None:
    planning.workspace.home.recording(SERVICE, "text").write_bytes(recording)
    entry, _ = planning.again()
    assert planning.evidence["seen"] == "data"
    assert note in planning.evidence["note"]
    assert entry.profiles[-1].covers(TOP)


def test_without_anything_seen_the_bounds_are_the_one_profile(planning: Planning) -> None:
    bounds = parse_pipeline(planning.project.pipeline.read_text()).encoder("text").profiles
    entry, _ = planning.again(modality="audio")
    assert entry.profiles == bounds
    assert planning.evidence["seen"] == "bounds"
