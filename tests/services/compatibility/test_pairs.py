"""Pairs in children: what breaks together, what crashes, and that every other pair still runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from services.children.errors import ChildCrashed
from services.children.phases import Phases
from services.children.process import run_child
from services.compatibility.pair_request import RUN_PAIR, Part, RunFigures, RunRequest
from services.compatibility.pairs import PairPlan, measure_pairs
from services.compatibility.tasks import run_pair
from services.engines.tensors import save_cases
from validators.compatibility.measured import CompatibilityWord
from validators.compatibility.paired import PairMeasurement, PairRun
from validators.compatibility.pairing import PairSettings, judge_pair
from validators.contracts.engine import Precision
from validators.contracts.errors import BadInput
from validators.contracts.verdict import Outcome

pytestmark = pytest.mark.slow

PAIRS = """
import os
import torch

class Says(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
    def forward(self, values):
        return values * self.scale

class Norm(torch.nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps
    def forward(self, values):
        centred = values - values.mean(-1, keepdim=True)
        return centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + self.eps)

class Reads(torch.nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.norm = Norm(eps)
    def forward(self, words, heard=None):
        return self.norm(words) if heard is None else self.norm(words) + self.norm(heard)

class Pair(torch.nn.Module):
    def __init__(self, reads, says):
        super().__init__()
        self.reads, self.says = reads, says
    def forward(self, words, values):
        return self.reads(words, self.says(values))

class Rare(Says):
    def forward(self, values):
        return torch.where(values.amax() > 4.2, torch.nan, values)

def tight(): return Reads(1e-12)
def wide(): return Reads(1e-5)
def small(): return Says(1e-4)
def large(): return Says(1.0)
def huge(): return Says(1e5)
def rare(): return Rare(1.0)
def dies(): os._exit(7)
"""
ITEMS = 300
PRECISIONS = (Precision.FP16, Precision.FP32)

Cells = Mapping[tuple[str, str], PairMeasurement]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The factories, and the cases in a file."""
    made = tmp_path_factory.mktemp("pairs")
    (made / "tiny_pairs.py").write_text(PAIRS)
    save_cases(made / "cases.npz", make_cases())
    return made


@pytest.fixture(scope="module")
def measured(folder: Path) -> Cells:
    """Every pair by the task itself, in this process."""
    alone = {part: figures(folder, part) for part in (*READS, *SAYS)}
    return {
        (reads, says): PairMeasurement(
            "r", "c",
            tuple(
                PairRun(
                    item.precision, item.computed, item.computed_in, item.requests, item.broken,
                    first.broken, second.broken, item.peak, item.headroom, item.flushed_share,
                    item.cosine_min, item.first_broken,
                )
                for item, first, second in zip(
                    figures(folder, reads, says), alone[reads], alone[says], strict=True
                )
            ),
        )
        for reads in READS
        for says in SAYS
    }  # fmt: skip


READS, SAYS = ("tight", "wide"), ("small", "large", "huge", "rare")


def make_cases() -> list[dict[str, npt.NDArray[np.float32]]]:
    random = np.random.default_rng(0)
    return [
        {name: random.normal(size=(1, 16)).astype(np.float32) for name in ("words", "values")}
        for _ in range(ITEMS)
    ]


def request(folder: Path, *names: str) -> RunRequest:
    parts = tuple(
        Part(f"tiny_pairs:{name}", ("words",) if name in READS else ("values",)) for name in names
    )
    join = "tiny_pairs:Pair" if len(parts) == 2 else None
    return RunRequest(parts, join, str(folder), str(folder / "cases.npz"), PRECISIONS)


def figures(folder: Path, *names: str) -> tuple[RunFigures, ...]:
    return run_pair.run(request(folder, *names), Phases(lambda _: None)).figures


def half(cell: PairMeasurement) -> int:
    return next(run.broken for run in cell.runs if run.precision is Precision.FP16)


def test_two_that_work_alone_break_together_in_half(
    measured: Cells,
) -> None:
    cell = measured["tight", "small"]
    fp16, fp32 = cell.runs
    assert fp16.broken == ITEMS
    assert (fp16.broken_first, fp16.broken_second, fp32.broken) == (0, 0, 0)
    assert fp16.first_broken.startswith("reads.norm")
    assert judge_pair(cell).word is CompatibilityWord.BLOCK


def test_the_epsilon_alone_flips_the_verdict(
    measured: Cells,
) -> None:
    assert half(measured["wide", "small"]) == 0
    judged = judge_pair(measured["wide", "small"])
    assert judged.word is CompatibilityWord.COMPATIBLE
    assert {item.code for item in judged.verdict.findings} == {"underflow"}
    assert judge_pair(measured["wide", "large"]).verdict.outcome is Outcome.PASS


def test_an_overflow_is_its_encoder_s_own_fault(
    measured: Cells,
) -> None:
    judged = judge_pair(measured["wide", "huge"])
    assert judged.word is CompatibilityWord.BLOCK
    assert {item.code for item in judged.verdict.findings} >= {"broken-alone"}


def test_a_rare_nan_is_seen_and_counted(
    measured: Cells,
) -> None:
    (fp16, fp32) = measured["wide", "rare"].runs
    assert 0 <= fp32.broken < ITEMS / 50
    assert fp16.broken_second == fp16.broken
    word = CompatibilityWord.BLOCK if fp32.broken else CompatibilityWord.COMPATIBLE
    assert judge_pair(measured["wide", "rare"]).word is word


def test_a_crash_is_an_error_cell_and_the_other_pairs_are_run(folder: Path) -> None:
    plan = PairPlan(
        (Part("tiny_pairs:wide", ("words",)),),
        (Part("tiny_pairs:dies", ("values",)), Part("tiny_pairs:large", ("values",))),
        "tiny_pairs:Pair",
        folder,
    )
    found = measure_pairs(plan, make_cases(), folder / "work", precisions=PRECISIONS)
    assert "code 7" in found[0, 0].crashed
    assert judge_pair(found[0, 0]).verdict.outcome is Outcome.ERROR
    cell = found[0, 1]
    assert judge_pair(cell).word is CompatibilityWord.COMPATIBLE
    assert cell.duration_ms > 0 and cell.peak_bytes > 0


def test_what_an_earlier_child_said_does_not_answer_for_one_that_died(
    folder: Path, tmp_path: Path
) -> None:
    run_child(RUN_PAIR, request(folder, "large"), tmp_path, subject="large")
    with pytest.raises(ChildCrashed):
        run_child(RUN_PAIR, request(folder, "dies"), tmp_path, subject="dies")


def test_a_pair_that_nothing_joins_is_bad_input(folder: Path) -> None:
    wrong = replace(request(folder, "wide", "large"), join="tiny_pairs:Nothing")
    with pytest.raises(BadInput, match="joins the pair"):
        run_pair.run(wrong, Phases(lambda _: None))
    missing = replace(request(folder, "wide"), parts=(Part("tiny_pairs:wide", ("sounds",)),))
    with pytest.raises(BadInput, match="no sounds"):
        run_pair.run(missing, Phases(lambda _: None))


def test_too_few_requests_decide_nothing(measured: Cells) -> None:
    strict = PairSettings(most_broken=0.002)
    judged = judge_pair(measured["wide", "large"], strict)
    assert judged.verdict.outcome is Outcome.INCONCLUSIVE
