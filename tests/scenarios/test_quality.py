"""The quality gate in whole releases: edited suites, kept pages, and what came before."""

from __future__ import annotations

import json

import pytest

from tests.scenarios.small import SERVICE, Project, Row
from tests.scenarios.stage import Stage, findings, outcomes, release_arguments
from tests.scenarios.test_interruption import kill_when, step_ended

pytestmark = pytest.mark.slow


def edit_suite(project: Project, name: str, **limits: float) -> None:
    """Narrow the range of brightness in the file of a suite."""
    path = project.folder / "quality" / f"{name}.json"
    suite = json.loads(path.read_text(encoding="utf-8"))
    for item in suite["expectations"]:
        if item["kwargs"].get("column") == "brightness" and "between" in item["type"]:
            item["kwargs"].update(limits)
    path.write_text(json.dumps(suite), encoding="utf-8")


def use_files(project: Project, stage: Stage) -> None:
    assert stage.cli("quality", "init", str(project.pipeline), "--json").code == 0
    project.edit(lambda document: document["gates"].update(quality={"suites": "quality"}))


@pytest.mark.heavy
def test_an_edited_suite_stops_the_release_and_its_pages_are_kept(
    fresh: Stage, project: Project
) -> None:
    use_files(project, fresh)
    edit_suite(project, "image", min_value=200)
    ran = fresh.release(project)
    assert (ran.code, outcomes(ran.document)["quality"]) == (3, "FAIL")
    dark = [f for f in findings(ran.document, "quality") if f["code"] == "out-of-range-brightness"]
    assert dark
    assert {item["limit"] for item in dark} == {"200 to 254.5"}

    folder = fresh.home / "evidence" / SERVICE / "quality"
    pages = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.html")}
    assert {"index.html", "image.html", "image-suite.html", "samples.html"} <= set(pages)
    assert "200" in pages["image-suite.html"]
    assert not any("://" in text or "<script" in text for text in pages.values())
    kept = {item["name"] for item in fresh.evidence("quality")["evidence"]}
    assert kept == {"quality-docs.zip", "quality-results.json", "quality-suites.json"}
    results = json.loads((folder / "quality-results.json").read_text(encoding="utf-8"))
    (failing,) = [
        entry
        for suite in results["suites"]
        for entry in suite["failing"]
        if entry["code"] == "out-of-range-brightness"
    ]
    assert {item["subject"] for item in dark[:5]} <= set(failing["samples"])
    assert fresh.orphans() == []

    again = fresh.release(project)
    assert {step["name"]: step["cached"] for step in again.document["steps"]}["quality"] is True
    edit_suite(project, "image", min_value=1)
    run = fresh.start(*release_arguments(project))
    assert kill_when(run, step_ended(run, "quality")), run.progress()
    assert fresh.evidence("quality")["findings"] == []


def test_a_suite_that_asks_for_more_than_it_may_stops_before_anything_is_judged(
    fresh: Stage, project: Project
) -> None:
    use_files(project, fresh)
    path = project.folder / "quality" / "text.json"
    suite = json.loads(path.read_text(encoding="utf-8"))
    suite["expectations"][0]["type"] = "unexpected_rows_expectation"
    path.write_text(json.dumps(suite), encoding="utf-8")
    ran = fresh.release(project)
    assert (ran.code, ran.document["status"]) == (2, "bad-input")
    assert "quality/text.json" in ran.document["error"]["where"]
    assert "quality" not in outcomes(ran.document)


@pytest.mark.heavy
def test_a_later_data_set_is_compared_with_the_one_before_it_and_a_second_run_says_the_same(
    fresh: Stage, project: Project
) -> None:
    def weather(rows: list[Row]) -> None:
        for row in rows:
            row["tags"] = {**row["tags"], "weather": "sun"}

    def snow(rows: list[Row]) -> None:
        rows[0]["tags"] = {**rows[0]["tags"], "weather": "snow"}

    project.collect(weather)
    first = fresh.release(project)
    assert first.code == 0, first.document.get("error")
    project.collect(snow)
    second = fresh.release(project)
    assert second.code == 0, second.document.get("error")
    told = {(f["code"], f["subject"]) for f in findings(second.document, "quality")}
    assert ("unseen-category", "tag.weather") in told
    again = fresh.release(project)
    assert again.document["unchanged"] is True
    assert findings(again.document, "quality") == findings(second.document, "quality")
