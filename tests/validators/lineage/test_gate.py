from __future__ import annotations

import pytest

from tests.validators.datasets import dataset, media, sample
from validators.contracts.dataset import Dataset, Sample
from validators.contracts.digest import canonical_json
from validators.contracts.documents import load
from validators.contracts.verdict import Outcome, Verdict
from validators.lineage.gate import assess_lineage
from validators.lineage.summary import LineageSummary, summarise


def codes(verdict: Verdict) -> list[tuple[str, str]]:
    return [(item.code, item.subject) for item in verdict.findings]


def against(current: Dataset, reference: Dataset) -> Verdict:
    return assess_lineage(current, summarise(reference), champion_exists=True)


REFERENCE = dataset(sample("a"), sample("b", media("image"), media("text")))


def test_the_same_lineage_passes() -> None:
    assert against(REFERENCE, REFERENCE).outcome is Outcome.PASS


@pytest.mark.parametrize("tag", ["sensor", "channels", "lighting", "source"])
def test_a_sample_without_one_of_its_tags_is_refused_by_id(tag: str) -> None:
    whole = sample("bare")
    bare = Sample("bare", whole.media, tuple(item for item in whole.tags if item[0] != tag))
    verdict = against(dataset(sample("a"), bare), REFERENCE)
    assert verdict.outcome is Outcome.FAIL
    assert ("missing-tag", "bare") in codes(verdict)


def test_a_blank_tag_is_no_tag() -> None:
    verdict = against(dataset(sample("a", lighting="  ")), REFERENCE)
    assert ("missing-tag", "a") in codes(verdict)


def test_a_modality_that_the_reference_never_saw_blocks() -> None:
    verdict = against(dataset(sample("a", media("image"), media("thermal"))), REFERENCE)
    assert verdict.outcome is Outcome.FAIL
    assert ("unseen-modality", "thermal") in codes(verdict)


def test_infrared_beside_colour_blocks_where_the_reference_had_colour_only() -> None:
    verdict = against(dataset(sample("a", channels="RGB+IR")), REFERENCE)
    assert verdict.outcome is Outcome.FAIL
    assert ("unseen-channels", "IR+RGB") in codes(verdict)


def test_the_order_and_case_of_channels_do_not_matter() -> None:
    reference = dataset(sample("a", channels="RGB+IR"))
    assert against(dataset(sample("a", channels="ir + rgb")), reference).outcome is Outcome.PASS


@pytest.mark.parametrize("tag", ["sensor", "lighting", "source"])
def test_a_new_value_of_another_tag_warns(tag: str) -> None:
    verdict = against(dataset(sample("a", **{tag: "unheard of"})), REFERENCE)
    assert (verdict.outcome, codes(verdict)) == (Outcome.WARN, [(f"new-{tag}", "unheard of")])


@pytest.mark.parametrize(
    ("reference", "current", "outcome"),
    [
        (142.3, 89.7, Outcome.WARN),
        (89.7, 142.3, Outcome.WARN),
        (142.3, 120.0, Outcome.PASS),  # 16 %: borderline, below a fifth
        (142.3, 110.0, Outcome.WARN),
    ],
)
def test_a_shift_of_mean_brightness_alerts(
    reference: float, current: float, outcome: Outcome
) -> None:
    def lit(brightness: float) -> Dataset:
        return dataset(
            *(
                sample(f"s{index:02}", media("image", brightness=brightness + index % 5 - 2))
                for index in range(30)
            )
        )

    assert against(lit(current), lit(reference)).outcome is outcome


def test_a_shift_within_sampling_noise_does_not_alert() -> None:
    few = dataset(*(sample(f"s{i}", media("image", brightness=v)) for i, v in enumerate((20, 220))))
    other = dataset(
        *(sample(f"s{i}", media("image", brightness=v)) for i, v in enumerate((10, 140)))
    )
    assert against(other, few).outcome is Outcome.PASS


def test_the_first_release_warns_that_it_becomes_the_reference() -> None:
    verdict = assess_lineage(REFERENCE, None, champion_exists=False)
    assert (verdict.outcome, codes(verdict)) == (Outcome.WARN, [("first-release", "reference")])


def test_a_lost_reference_is_inconclusive() -> None:
    verdict = assess_lineage(REFERENCE, None, champion_exists=True)
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_an_empty_data_set_is_inconclusive() -> None:
    verdict = assess_lineage(Dataset(()), summarise(Dataset(())), champion_exists=True)
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_a_summary_survives_being_written_and_read() -> None:
    summary = summarise(REFERENCE)
    assert load(LineageSummary, canonical_json(summary)) == summary
