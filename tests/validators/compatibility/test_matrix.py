"""Names are attached after judging, and a block names the smallest change that leads out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.validators.compatibility.test_pairing import RUN
from validators.compatibility.matrix import (
    CompatibilityMatrix,
    Role,
    Version,
    alternatives,
    fill,
    judge_matrix,
    remedies,
)
from validators.compatibility.measured import CompatibilityWord
from validators.compatibility.paired import PairMeasurement
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.errors import BadInput
from validators.contracts.verdict import Outcome

TEXTS = (Version("text", "2.1.0", Role.LIVE), Version("text", "2.1.1", Role.CANDIDATE))
VISIONS = (Version("vision", "1.8.3", Role.LIVE), Version("vision", "1.8.4", Role.CANDIDATE))

FINE = PairMeasurement("r", "c", (RUN,))
BROKEN = replace(FINE, runs=(replace(RUN, broken=311, flushed_share=0.58),))
NARROW = replace(FINE, runs=(replace(RUN, flushed_share=0.58),))
CRASHED = replace(FINE, crashed="died of SIGSEGV")
INCIDENT = {(0, 0): BROKEN, (0, 1): FINE, (1, 0): NARROW, (1, 1): FINE}


def matrix(cells: dict[tuple[int, int], PairMeasurement] | None = None) -> CompatibilityMatrix:
    return fill("incident", TEXTS, VISIONS, cells or INCIDENT)


def test_the_incident_is_blocked_and_the_remedy_names_the_other_vision() -> None:
    made = matrix()
    cell = made.find("2.1.0", "1.8.3")
    assert (cell.word, cell.outcome) == (CompatibilityWord.BLOCK, Outcome.FAIL)
    (remedy,) = remedies(made)
    assert remedy.by == VISIONS[1]
    assert remedy.sentence == "Take vision 1.8.4 in place of 1.8.3 beside text 2.1.0."
    assert made.find("2.1.1", "1.8.4").passes


def test_a_cell_that_is_finite_by_a_narrow_margin_is_the_second_choice() -> None:
    made = matrix()
    places = [(cell.row, cell.column) for cell in alternatives(made, made.cell(0, 0))]
    assert places == [(0, 1), (1, 0)]


def test_an_older_version_is_taken_where_no_newer_one_helps() -> None:
    made = matrix({(0, 0): FINE, (0, 1): BROKEN, (1, 0): BROKEN, (1, 1): BROKEN})
    assert {(r.row, r.column): r.by.version for r in remedies(made)} == {
        (0, 1): "1.8.3", (1, 0): "2.1.0",
    }  # fmt: skip


def test_names_are_in_the_findings_and_nowhere_before() -> None:
    made = matrix()
    assert {finding.subject for finding in made.cell(0, 0).findings} == {
        "text 2.1.0 x vision 1.8.3 in fp16"
    }
    assert made.cell(0, 0).measured == BROKEN


def test_a_crashed_pair_is_an_error_cell_and_the_others_stand() -> None:
    made = matrix({**INCIDENT, (1, 1): CRASHED})
    assert (made.cell(1, 1).word, made.cell(1, 1).outcome) == (None, Outcome.ERROR)
    assert made.cell(0, 1).passes


def test_the_worst_cell_decides_and_carries_the_way_out() -> None:
    verdict = judge_matrix(matrix())
    assert verdict.outcome is Outcome.FAIL
    assert any("Take vision 1.8.4" in finding.remedy for finding in verdict.findings)
    assert judge_matrix(matrix(), [(1, 1)]).outcome is Outcome.PASS


def test_a_pair_that_was_not_measured_is_refused() -> None:
    with pytest.raises(BadInput, match="1 pairs"):
        fill("incident", TEXTS, VISIONS, {k: v for k, v in INCIDENT.items() if k != (1, 1)})
    with pytest.raises(BadInput):
        matrix().find("9", "9")


def test_it_is_a_document() -> None:
    made = matrix()
    assert load(CompatibilityMatrix, canonical_json(made)) == made


@given(st.permutations([0, 1]), st.permutations([0, 1]), st.text(min_size=1, max_size=5))
def test_verdicts_follow_the_tensors_when_versions_are_shuffled_and_renamed(
    rows: list[int], columns: list[int], prefix: str
) -> None:
    plain = matrix()
    shuffled = fill(
        "incident",
        [replace(TEXTS[row], version=prefix + TEXTS[row].version) for row in rows],
        [replace(VISIONS[column], version=prefix + VISIONS[column].version) for column in columns],
        {
            (at, place): INCIDENT[row, column]
            for at, row in enumerate(rows)
            for place, column in enumerate(columns)
        },
    )
    for at, row in enumerate(rows):
        for place, column in enumerate(columns):
            here, there = shuffled.cell(at, place), plain.cell(row, column)
            assert (here.word, here.outcome) == (there.word, there.outcome)
            assert here.metrics == there.metrics
