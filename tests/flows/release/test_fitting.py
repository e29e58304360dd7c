from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from flows.release.fitting import find_broken, held_out_of, require_held_out
from tests.flows.examples.storefront.models import pipeline as storefront
from validators.contracts.dataset import Dataset, Media, Sample
from validators.contracts.digest import digest_bytes
from validators.contracts.errors import BadInput
from validators.contracts.pipeline import AdapterEntry, Branch
from validators.contracts.verdict import Outcome

SAMPLES = [f"sample-{at}" for at in range(500)]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_one_broken_answer_in_500_stops_and_is_named(wrong: float) -> None:
    values = {"features": np.ones((500, 4)), "logits": np.ones((500, 2, 3))}
    assert find_broken("image", SAMPLES, values) is None
    values["logits"][417, 1, 2] = wrong
    found = find_broken("image", SAMPLES, values)
    assert found is not None and (found.outcome, found.waivable) == (Outcome.FAIL, False)
    assert found.subject == "image" and "sample-417" in str(found.measured)
    assert "1 of 500 samples (0.04% to 1.12%)" in str(found.measured)


def test_many_broken_answers_are_counted() -> None:
    values = {"features": np.full((500, 4), np.nan)}
    found = find_broken("image", SAMPLES, values)
    assert found is not None and "and 492 more" in str(found.measured)


@pytest.mark.parametrize(
    ("recordings", "tags", "refused"),
    [(1, {}, "none is held out|all are held out"), (40, {}, None),
     (3, {"split": "train"}, "none is held out"), (3, {"split": "held-out"}, "all are held out")],
)  # fmt: skip
def test_data_of_which_nothing_could_be_held_out_is_refused_before_the_work(
    recordings: int, tags: dict[str, str], refused: str | None
) -> None:
    def cut(number: int) -> Sample:
        media = tuple(
            Media(kind, digest_bytes(f"{kind} {number}".encode()), "") for kind in ("image", "text")
        )
        found = {"recording": f"clip-{number % recordings}", **tags}
        return Sample(f"s{number:03d}", media, tuple(sorted(found.items())))

    branch = Branch("image", "image", AdapterEntry("ridge", "features", "minilm"))
    pipeline = dataclasses.replace(storefront(), branches=(branch,))
    clean = Dataset(tuple(cut(number) for number in range(120)))
    if refused is None:
        require_held_out(pipeline, clean)
        return
    with pytest.raises(BadInput, match=refused):
        require_held_out(pipeline, clean)


def test_data_without_a_pair_is_left_to_the_fit_that_names_it() -> None:
    branch = Branch("image", "image", AdapterEntry("ridge", "features", "minilm"))
    require_held_out(dataclasses.replace(storefront(), branches=(branch,)), Dataset(()))


def test_samples_of_one_recording_fall_on_one_side() -> None:
    def cut(recording: str, number: int) -> Sample:
        media = (Media("image", digest_bytes(f"{recording} {number}".encode()), "image/png"),)
        return Sample(f"{recording}.{number}", media, (("recording", recording),))

    held_out = held_out_of([cut(f"clip-{one}", at) for one in range(40) for at in range(5)])
    sides = held_out.reshape(40, 5)
    assert (sides == sides[:, :1]).all()
    assert 0 < sides[:, 0].sum() < 40
