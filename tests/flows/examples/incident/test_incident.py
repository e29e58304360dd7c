"""The committed incident: four encoders that work alone, one pair of them that does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from flows.compatibility.incident import REQUESTS, incident_matrix
from flows.examples.incident import text, vision
from flows.examples.incident.fusion import Fusion
from flows.examples.incident.requests import Arrays, make_requests
from validators.compatibility.matrix import judge_matrix, remedies
from validators.compatibility.measured import CompatibilityWord
from validators.contracts.engine import Precision
from validators.contracts.verdict import Outcome

COUNT = 12
HALF = torch.float16


@pytest.fixture(scope="module")
def requests() -> list[Arrays]:
    pytest.importorskip("skimage")
    torch.set_num_threads(1)
    return make_requests(COUNT)


def broken(module: nn.Module, requests: Sequence[Arrays], *names: str) -> int:
    def run(request: Arrays) -> Tensor:
        given: Tensor = module(*(torch.from_numpy(request[name].copy()) for name in names))
        return given

    with torch.inference_mode():
        return sum(not bool(torch.isfinite(run(item)).all()) for item in requests)


@pytest.mark.parametrize("make", [text.text_2_1_0, text.text_2_1_1, vision.vision_1_8_3,
                                  vision.vision_1_8_4])  # fmt: skip
def test_each_alone_is_free_of_nan_in_half(make: type[nn.Module], requests: list[Arrays]) -> None:
    name = "ids" if make.__module__ == text.__name__ else "pixels"
    assert broken(make().to(HALF), requests, name) == 0


@pytest.mark.parametrize(
    ("epsilon", "rescale", "mostly"),
    [(1e-12, False, True), (1e-5, False, False), (1e-12, True, False), (1e-5, True, False)],
)
def test_one_pair_is_mostly_nan_in_half_and_the_epsilon_alone_flips_that(
    epsilon: float, rescale: bool, mostly: bool, requests: list[Arrays]
) -> None:
    pair = Fusion(text.Text(epsilon), vision.Vision(rescale=rescale)).to(HALF)
    count = broken(pair, requests, "ids", "pixels")
    assert (count > COUNT / 2) if mostly else (count == 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_pair_is_finite_where_the_exponent_is_wide(
    dtype: torch.dtype, requests: list[Arrays]
) -> None:
    pair = Fusion(text.text_2_1_0(), vision.vision_1_8_3()).to(dtype)
    assert broken(pair, requests, "ids", "pixels") == 0


def test_the_two_texts_differ_in_nothing_but_the_epsilon() -> None:
    old, new = text.text_2_1_0(), text.text_2_1_1()
    weights = zip(old.state_dict().values(), new.state_dict().values(), strict=True)
    assert all(torch.equal(one, other) for one, other in weights)
    assert {old.arrival_norm.eps, new.arrival_norm.eps} == {1e-12, 1e-5}


def test_requests_are_seeded_and_varied(requests: list[Arrays]) -> None:
    again = make_requests(COUNT)
    assert all((a["pixels"] == b["pixels"]).all() for a, b in zip(requests, again, strict=True))
    assert len({item["pixels"].tobytes() for item in requests}) == COUNT
    assert all(item["ids"].max() < text.VOCABULARY for item in requests)


@pytest.mark.heavy
def test_the_matrix_is_judged_from_executed_tensors_and_names_the_way_out(tmp_path: Path) -> None:
    pytest.importorskip("skimage")
    matrix = incident_matrix(tmp_path, requests=REQUESTS)
    bad = matrix.find("2.1.0", "1.8.3")
    assert (bad.word, bad.outcome) == (CompatibilityWord.BLOCK, Outcome.FAIL)
    half = next(run for run in bad.measured.runs if run.precision is Precision.FP16)
    assert half.requests == REQUESTS >= 300
    assert half.rate.low > 0.5
    assert (half.broken_first, half.broken_second) == (0, 0)
    assert half.first_broken == "text.arrival_norm"
    for row, column in (("2.1.0", "1.8.4"), ("2.1.1", "1.8.3"), ("2.1.1", "1.8.4")):
        cell = matrix.find(row, column)
        assert cell.word is CompatibilityWord.COMPATIBLE
        assert sum(run.broken for run in cell.measured.runs) == 0
    assert matrix.find("2.1.1", "1.8.4").outcome is Outcome.PASS
    (remedy,) = remedies(matrix)
    assert (remedy.by.encoder, remedy.by.version) == ("vision", "1.8.4")
    assert "vision 1.8.4" in judge_matrix(matrix).findings[0].remedy
