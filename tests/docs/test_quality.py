"""The page of data quality says what the code does."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from validators.compatibility.estimates import wilson_bounds
from validators.contracts.quality import Consequence, QualityRules
from validators.quality.expectations import FORMS
from validators.quality.patterns import MAX_PATTERN
from validators.quality.suite_file import MAX_EXPECTATIONS, MAX_FILE_BYTES
from validators.quality.words import MAX_NAMED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "quality.md").read_text(encoding="utf-8")
RULES = PAGE.split("## Rules")[1].split("## What is kept")[0]


def test_every_expectation_that_may_be_used_is_listed_and_no_other() -> None:
    assert set(re.findall(r"`(expect_\w+)`", PAGE)) == set(FORMS)


@pytest.mark.parametrize(
    "said",
    [
        f"{MAX_FILE_BYTES // 1024} KiB and {MAX_EXPECTATIONS} expectations",
        f"has {MAX_PATTERN} characters at most",
        f"Findings name {MAX_NAMED} bad rows",
        f"`minimum_samples` ({QualityRules().minimum_samples})",
        f"10 %, at least {wilson_bounds(0.1, 20)[0] * 100:.1f} %",
        f"at least {wilson_bounds(0.25, 20)[0] * 100:.1f} %",
    ],
)
def test_its_figures_are_those_of_the_code(said: str) -> None:
    assert said in PAGE


def test_each_rule_does_what_the_table_says() -> None:
    rows = re.findall(r"^\|.*\| `(\w+)\.(\w+)` \| (\w+) \|$", RULES, flags=re.MULTILINE)
    assert len(rows) >= 14
    rules = QualityRules()
    defaults = {
        (part, field.name): getattr(getattr(rules, part), field.name).value
        for part in ("duplicates", "times", "columns", "clipping")
        for field in fields(getattr(rules, part))
        if isinstance(getattr(getattr(rules, part), field.name), Consequence)
    }
    told = {(part, name): does for part, name, does in rows if part != "labels"}
    assert told == defaults


def test_every_finding_of_the_rules_is_explained() -> None:
    code = "".join(
        (ROOT / "validators" / "quality" / f"{name}.py").read_text(encoding="utf-8")
        for name in ("duplicates", "times", "labels", "columns")
    )
    said = set(re.findall(r"`([a-z-]+)(?:-<modality>)?`", RULES.replace("-<modality>", "")))
    kinds = "time|class|duplicate|near|constant|empty|unseen"
    given = set(re.findall(rf'"((?:{kinds})-[a-z-]+)"', code)) | {"clipped"}
    assert len(given) >= 16
    assert given <= said
