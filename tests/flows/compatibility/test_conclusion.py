"""The matrix counts in how a run ends, and an encoder that only one side has is never passed by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.compatibility.compare import Comparison, alone
from flows.compatibility.conclusion import conclude_all
from flows.compatibility.sides import Side
from flows.release.values import Exported
from tests.scenarios.small import Project
from tests.validators.compatibility.test_matrix import CRASHED, FINE, INCIDENT, TEXTS, VISIONS
from tests.validators.compatibility.test_pairing import FOUND
from validators.compatibility.matrix import CompatibilityMatrix, Role, fill
from validators.compatibility.paired import PairMeasurement, PairRetrieval
from validators.contracts.digest import digest_bytes
from validators.contracts.pipeline_file import parse_pipeline
from validators.contracts.verdict import Outcome, conclude

FINE_ALONE = Comparison("image", "a", "b", None, conclude("compatibility", [], examined=1))
ALL_FINE = dict.fromkeys(INCIDENT, FINE)


def matrix(changed: PairMeasurement, role: Role = Role.CANDIDATE) -> CompatibilityMatrix:
    """Text versions by vision versions, the older ones live; the second text changed."""
    texts = (TEXTS[0], replace(TEXTS[1], role=role))
    return fill("shop", texts, VISIONS, {**ALL_FINE, (1, 0): changed})


def retrieval(**changes: Any) -> PairMeasurement:
    seen: PairRetrieval = replace(FOUND, **changes)
    return PairMeasurement("r", "c", retrieval=seen)


@pytest.mark.parametrize(
    ("cell", "outcome"),
    [
        (FINE, Outcome.PASS),
        (retrieval(unusable=3), Outcome.FAIL),
        (CRASHED, Outcome.ERROR),
        (retrieval(queries=5, hits=5, reference_hits=5, refitted_hits=5), Outcome.INCONCLUSIVE),
        (retrieval(lost=60, refitted_lost=60), Outcome.WARN),
    ],
)
def test_a_cell_decides_how_the_run_ends_and_reindex_is_a_warning(
    cell: PairMeasurement, outcome: Outcome
) -> None:
    assert conclude_all([FINE_ALONE], [matrix(cell)]).outcome is outcome


def test_what_served_before_does_not_stop_a_candidate() -> None:
    made = matrix(CRASHED, role=Role.ROLLBACK)
    but = frozenset({Role.ROLLBACK})
    assert conclude_all([FINE_ALONE], [made], but=but).outcome is Outcome.PASS
    assert conclude_all([FINE_ALONE], [made]).outcome is Outcome.ERROR


@pytest.mark.parametrize(
    ("old", "new", "outcome", "code"),
    [
        ("image text", "image", Outcome.FAIL, "encoder-lost"),
        ("image", "image text", Outcome.WARN, "no-predecessor"),
    ],
)
def test_an_encoder_of_one_side_only_is_shown(
    tmp_path: Path, old: str, new: str, outcome: Outcome, code: str
) -> None:
    project = Project(tmp_path / "project")
    pipeline = parse_pipeline(project.pipeline.read_text())

    def side(names: str) -> Side:
        exported = {
            name: Exported(pipeline.encoder(name).contract, digest_bytes(b"model"))
            for name in names.split()
        }
        return Side(names, Role.KNOWN, pipeline, project.folder, exported, {})

    sides = side(old), side(new)
    assert alone(sides, "image") is None
    found = alone(sides, "text")
    assert found is not None
    assert (found.verdict.outcome, found.verdict.findings[0].code) == (outcome, code)
    assert "absent" in found.old + found.new
