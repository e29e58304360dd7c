"""The page of lineage says what the gate and the graph say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.lineage import send
from validators.lineage import graph
from validators.lineage.counts import MAX_VALUES
from validators.lineage.gate import MAX_REFUSED
from validators.lineage.graph import NodeKind
from validators.lineage.settings import LineageSettings
from validators.lineage.tags import MAX_TAG_CHARACTERS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lineage.md").read_text()
ROOM = ROOT / "validators" / "lineage"


def section(title: str) -> str:
    return PAGE.split(f"## {title}")[1].split("\n## ")[0]


def named_in(table: str) -> set[str]:
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {word for row in rows for word in re.findall(r"`([\w-]+)`", row)}


def test_every_finding_of_the_gate_is_explained_and_no_other() -> None:
    code = "".join(path.read_text() for path in (ROOM / name for name in (
        "compare.py", "gate.py", "brightness.py")))  # fmt: skip
    given = set(re.findall(r'GATE,\s+"([a-z-]+)"', code)) | set(
        re.findall(r'_named\("([a-z-]+)"', code)
    )
    given |= {f"new-{tag}" for tag in ("sensor", "lighting", "source")}
    assert named_in(section("What the gate compares")) == given


def test_every_fault_of_a_graph_is_explained() -> None:
    derive = (ROOT / "flows" / "lineage" / "derive.py").read_text()
    code = Path(graph.__file__).read_text() + derive
    given = set(re.findall(r'Fault\(\s*"([a-z-]+)"', code))
    assert named_in(section("What came from what")) == given


def test_its_variables_are_those_that_are_read() -> None:
    read = set(re.findall(r'"(OPENLINEAGE_\w+)"', Path(send.__file__).read_text()))
    assert named_in(section("OpenLineage")) == read


def test_the_picture_has_every_kind_of_thing() -> None:
    picture = section("What came from what").split("```")[1]
    words = set(re.findall(r"[a-z]+", picture.replace("assets", "asset")))
    assert {kind.value for kind in NodeKind} <= words


@pytest.mark.parametrize(
    "said",
    [
        f"{MAX_VALUES:,} values",
        f"{MAX_TAG_CHARACTERS} characters",
        f"effect of more than {LineageSettings().shift_effect}",
        "named by id, a hundred at most" if MAX_REFUSED == 100 else "",
        "ten pictures" if LineageSettings().slice_pictures == 10 else "",
        "ten seconds" if send.BUDGET_S == 10 else "",
    ],
)
def test_its_bounds_are_those_of_the_code(said: str) -> None:
    assert said
    assert said in PAGE
