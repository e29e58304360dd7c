from __future__ import annotations

import pytest

from tests.validators.datasets import dataset, media, sample
from validators.contracts.dataset import Dataset
from validators.contracts.digest import canonical_json
from validators.contracts.verdict import Outcome, Verdict
from validators.quality.gate import assess_quality, run_suites
from validators.quality.settings import QualitySettings

pytestmark = pytest.mark.slow  # Great Expectations takes seconds to import


def found(verdict: Verdict) -> set[tuple[str, str]]:
    return {(item.code, item.subject) for item in verdict.findings}


def test_good_measures_pass() -> None:
    data = dataset(sample("a"), sample("b", media("image"), media("text"), media("audio")))
    verdict = assess_quality(data, QualitySettings(missing_rate=0.5))
    assert verdict.outcome is Outcome.PASS
    assert dict(verdict.metrics)["expectations_unmet"] == 0


def test_an_empty_data_set_is_inconclusive() -> None:
    assert assess_quality(Dataset(())).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("modality", "measure", "value", "code"),
    [
        ("image", "brightness", 0.0, "out-of-range-brightness"),
        ("image", "contrast", 0.5, "out-of-range-contrast"),
        ("image", "width_px", 2.0, "out-of-range-width-px"),
        ("audio", "rms_db", -120.0, "out-of-range-rms-db"),
        ("audio", "clipped_share", 0.4, "out-of-range-clipped-share"),
        ("text", "characters", 0.0, "out-of-range-characters"),
    ],
)
def test_a_measure_out_of_range_fails_and_names_the_sample(
    modality: str, measure: str, value: float, code: str
) -> None:
    data = dataset(
        sample("good", media(modality)), sample("bad", media(modality, **{measure: value}))
    )
    verdict = assess_quality(data)
    assert verdict.outcome is Outcome.FAIL
    assert found(verdict) == {(code, "bad")}


def test_a_missing_measure_is_never_taken_for_a_good_one() -> None:
    bare = media("image").__class__("image", media("image").digest, "image/png", ())
    verdict = assess_quality(dataset(sample("bare", bare), sample("full", media("image"))))
    assert ("missing-measure-sharpness", "bare") in found(verdict)


def test_a_wrong_media_type_fails() -> None:
    image = media("image")
    odd = image.__class__("image", image.digest, "image/tiff", image.measures)
    assert found(assess_quality(dataset(sample("odd", odd)))) == {("media-type-media-type", "odd")}


@pytest.mark.parametrize(("missing", "outcome"), [(1, Outcome.PASS), (2, Outcome.FAIL)])
def test_the_share_of_missing_modalities_decides(missing: int, outcome: Outcome) -> None:
    silent = [sample(f"silent{index}", media("image")) for index in range(missing)]
    full = [sample(f"full{index}") for index in range(20 - missing)]
    verdict = assess_quality(dataset(*silent, *full), QualitySettings(missing_rate=0.05))
    assert verdict.outcome is outcome
    expected = {("missing-modality-text", item.id) for item in silent}
    assert found(verdict) == (expected if outcome is Outcome.FAIL else set())


def test_an_expected_modality_that_no_sample_has_fails_for_all_of_them() -> None:
    verdict = assess_quality(dataset(sample("a")), QualitySettings(expected=("audio",)))
    assert found(verdict) == {("missing-modality-audio", "a")}


def test_a_repeated_id_fails() -> None:
    verdict = assess_quality(Dataset((sample("twin"), sample("twin"))))
    assert ("duplicate-id-sample", "twin") in found(verdict)


def test_a_modality_without_a_suite_is_an_error_not_a_pass() -> None:
    verdict = assess_quality(dataset(sample("a", media("smell"))))
    assert verdict.outcome is Outcome.ERROR


def test_the_evidence_is_a_document() -> None:
    runs = run_suites(dataset(sample("dark", media("image", brightness=0))), QualitySettings())
    assert b"out-of-range" in canonical_json(runs)
