from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from services.engines.precision.calibration import check_calibration
from services.engines.tensors import Arrays
from tests.services.engines.models import IMAGE, IMAGE_PROFILES, TEXT, TEXT_PROFILES
from tests.services.engines.precision.inputs import pictures, sentences
from validators.contracts.errors import BadInput

Change = Callable[[np.ndarray], np.ndarray]
NOISE = np.random.default_rng(3).normal(0, 1, (1, 3, 16, 16)).astype(np.float32)


def _mel(pixels: np.ndarray) -> np.ndarray:
    """A log-mel picture scaled as Whisper does: from about -1 up, a few tones above 1."""
    tones: np.ndarray = (np.maximum(NOISE * 3 + pixels, -8) + 4) / 4
    return tones


PICTURES: list[tuple[str, Change, str]] = [
    ("spectrograms", _mel, "its values go from"),
    ("0 to 255", lambda x: (x + 1) * 127, "its values go from"),
    ("one grey", lambda x: x * 0 + np.float32(0.5), "only 1 of 24 calibration samples differ"),
    ("nearly one grey", lambda x: x * np.float32(1e-3), "span"),
    ("saturated", lambda x: np.sign(x + NOISE * 0).astype(np.float32), "sit on the range's ends"),
    ("not a number", lambda x: x * np.float32(np.nan), "not finite"),
    ("other type", lambda x: x.astype(np.float64), "is float64"),
    ("channels last", lambda x: x.transpose(0, 2, 3, 1), "dimension 1"),
]


@pytest.mark.parametrize(("change", "finding"), [item[1:] for item in PICTURES],
                         ids=[item[0] for item in PICTURES])  # fmt: skip
def test_data_that_cannot_be_the_encoders_own_is_refused(change: Change, finding: str) -> None:
    feeds = [{"pixels": np.ascontiguousarray(change(case["pixels"]))} for case in pictures()]
    with pytest.raises(BadInput, match=finding) as caught:
        check_calibration(IMAGE, IMAGE_PROFILES, feeds)
    assert caught.value.remedy


def test_good_data_pass_and_what_cannot_be_seen_is_said() -> None:
    notes = check_calibration(IMAGE, IMAGE_PROFILES, pictures())
    assert notes == (
        "pixels: another modality with the same shape, range and spread would not have been "
        "noticed",
    )
    open_range = dataclasses.replace(IMAGE.inputs[0], value_range=None)
    contract = dataclasses.replace(IMAGE, inputs=(open_range,))
    loud: list[Arrays] = [{"pixels": case["pixels"] * np.float32(9)} for case in pictures()]
    assert "declares no range" in check_calibration(contract, IMAGE_PROFILES, loud)[0]


def test_a_picture_mostly_on_white_is_a_picture() -> None:
    feeds = pictures()
    for case in feeds:
        case["pixels"][:, :, :13] = 1.0  # 81 % of it
    check_calibration(IMAGE, IMAGE_PROFILES, feeds)


def test_tokens_have_to_be_the_vocabularys_and_more_than_one() -> None:
    notes = check_calibration(TEXT, TEXT_PROFILES, sentences())
    assert any("another tokenizer" in note for note in notes)
    foreign = sentences()
    foreign[7]["ids"] = foreign[7]["ids"] + 100
    with pytest.raises(BadInput, match="calibration sample 7: input ids holds"):
        check_calibration(TEXT, TEXT_PROFILES, foreign)
    flat = [
        {"ids": np.full((1, 2 + i), 5, np.int64), "mask": np.ones((1, 2 + i), np.int64)}
        for i in range(20)
    ]
    with pytest.raises(BadInput, match="every sample holds one number only"):
        check_calibration(TEXT, TEXT_PROFILES, flat)
    masked = [{"ids": case["ids"], "mask": case["mask"] * 0} for case in sentences()]
    with pytest.raises(BadInput, match="every position is masked"):
        check_calibration(TEXT, TEXT_PROFILES, masked)


def test_a_sample_outside_every_profile_is_named() -> None:
    feeds = sentences()
    long = np.ones((1, 33), np.int64)
    feeds[2] = {"ids": long, "mask": long}
    with pytest.raises(BadInput, match=r"calibration sample 2: .*outside every profile"):
        check_calibration(TEXT, TEXT_PROFILES, feeds)


def test_too_few_or_too_like_samples_are_refused() -> None:
    with pytest.raises(BadInput, match="15 calibration samples, 16 are the least"):
        check_calibration(IMAGE, IMAGE_PROFILES, pictures(15))
    with pytest.raises(BadInput, match="only 8 of 24"):
        check_calibration(IMAGE, IMAGE_PROFILES, pictures(8) * 3)
