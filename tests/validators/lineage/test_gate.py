from __future__ import annotations

import pytest

from tests.validators.datasets import dataset, media, sample
from validators.contracts.dataset import Dataset, Sample
from validators.contracts.digest import canonical_json, digest_bytes
from validators.contracts.documents import load
from validators.contracts.verdict import Outcome, Verdict
from validators.lineage.gate import MAX_REFUSED, assess_lineage
from validators.lineage.summary import LineageSummary, summarise


def codes(verdict: Verdict) -> list[tuple[str, str]]:
    return [(item.code, item.subject) for item in verdict.findings]


def against(current: Dataset, reference: Dataset) -> Verdict:
    return assess_lineage(current, summarise(reference), champion_exists=True)


def many(count: int = 40, **tags: str) -> Dataset:
    return dataset(*(sample(f"s{index:03}", **tags) for index in range(count)))


REFERENCE = many()


def with_one(**tags: str) -> Dataset:
    """The reference with one sample tagged otherwise."""
    return Dataset((*REFERENCE.samples[:-1], sample("t", **tags)))


def test_the_same_lineage_passes() -> None:
    assert against(REFERENCE, REFERENCE).outcome is Outcome.PASS


@pytest.mark.parametrize("tag", ["sensor", "channels", "lighting", "source"])
def test_a_sample_without_one_of_its_tags_is_refused_by_id(tag: str) -> None:
    whole = sample("bare")
    bare = Sample("bare", whole.media, tuple(item for item in whole.tags if item[0] != tag))
    verdict = against(dataset(sample("a"), bare), REFERENCE)
    assert verdict.outcome is Outcome.FAIL
    assert ("missing-tag", "bare") in codes(verdict)


@pytest.mark.parametrize(
    ("tag", "blank"),
    [("lighting", "  "), ("lighting", "\u00a0\u3000"), ("channels", " + "), ("channels", "＋")],
)
def test_a_blank_tag_is_no_tag(tag: str, blank: str) -> None:
    verdict = against(with_one(**{tag: blank}), REFERENCE)
    assert (verdict.outcome, codes(verdict)) == (Outcome.FAIL, [("missing-tag", "t")])


def test_a_modality_that_the_reference_never_saw_blocks() -> None:
    verdict = against(dataset(sample("a", media("image"), media("thermal"))), REFERENCE)
    assert verdict.outcome is Outcome.FAIL
    assert ("unseen-modality", "thermal") in codes(verdict)


def test_infrared_beside_colour_blocks_where_the_reference_had_colour_only() -> None:
    verdict = against(with_one(channels="RGB+IR"), REFERENCE)
    assert (verdict.outcome, codes(verdict)) == (Outcome.FAIL, [("unseen-channels", "IR+RGB")])


def test_the_order_and_case_of_channels_do_not_matter() -> None:
    reference = many(channels="RGB+IR")
    assert against(many(channels="ir + rgb+IR"), reference).outcome is Outcome.PASS


@pytest.mark.parametrize("tag", ["sensor", "lighting", "source"])
def test_a_new_value_of_another_tag_warns(tag: str) -> None:
    verdict = against(with_one(**{tag: "unheard of"}), REFERENCE)
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
    def pictures(*brightness: float) -> Dataset:
        return dataset(
            *(sample(f"s{i}", media("image", brightness=v)) for i, v in enumerate(brightness)),
            *(sample(f"t{i}", media("text")) for i in range(40)),
        )

    assert against(pictures(10, 140), pictures(20, 220)).outcome is Outcome.PASS


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


@pytest.mark.parametrize("text", ["cam\x00era", "cam\u202eera", "x" * 257, "cam\nera"])
def test_a_value_that_is_no_tag_is_refused_by_id_and_never_repeated(text: str) -> None:
    verdict = against(with_one(sensor=text), REFERENCE)
    assert verdict.outcome is Outcome.FAIL
    (found,) = [item for item in verdict.findings if item.code == "bad-tag"]
    assert found.subject == "t"
    assert text not in f"{found.measured}{found.remedy}"


def test_of_very_many_refused_samples_a_hundred_are_named_and_the_rest_counted() -> None:
    verdict = against(many(250, source=" "), REFERENCE)
    named = [item for item in verdict.findings if item.code == "missing-tag"]
    assert len(named) == MAX_REFUSED + 1
    assert (named[-1].subject, named[-1].measured) == ("others", "150 more")


def test_media_prepared_otherwise_than_the_reference_s_block() -> None:
    before, now = (digest_bytes(text) for text in (b"before", b"now"))
    reference = summarise(REFERENCE, {"image": before, "text": before})
    verdict = assess_lineage(
        REFERENCE, reference, champion_exists=True, preprocessing={"image": now, "text": before}
    )
    assert (verdict.outcome, codes(verdict)) == (
        Outcome.FAIL, [("preprocessing-differs", "data.image")],
    )  # fmt: skip
    assert verdict.findings[0].waivable


def test_one_sample_decides_nothing_about_how_often_tags_come() -> None:
    verdict = against(dataset(sample("a")), REFERENCE)
    assert (verdict.outcome, codes(verdict)) == (
        Outcome.INCONCLUSIVE, [("too-few-samples", "samples")],
    )  # fmt: skip
