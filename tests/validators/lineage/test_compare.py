from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from validators.contracts.digest import canonical_json, digest_bytes
from validators.contracts.verdict import Outcome, Verdict
from validators.lineage.compare import MAX_NAMED, compare_lineage
from validators.lineage.settings import LineageSettings
from validators.lineage.summary import (
    LineageSummary,
    LineageTally,
    SampleFacts,
    merge,
    preprocessed_by,
)

TAGS = {"sensor": "camera", "channels": "RGB", "lighting": "day", "source": "studio"}


def facts(*modalities: str, brightness: Sequence[float] = (), **tags: str) -> SampleFacts:
    return SampleFacts({**TAGS, **tags}, modalities or ("image", "text"), tuple(brightness))


def summary(*samples: SampleFacts) -> LineageSummary:
    tally = LineageTally()
    for item in samples:
        tally.add(item)
    return tally.summary()


def mixed(counts: Mapping[str, int], tag: str = "sensor") -> LineageSummary:
    return summary(*(facts(**{tag: value}) for value, n in counts.items() for _ in range(n)))


def codes(verdict: Verdict) -> list[tuple[str, str]]:
    return [(item.code, item.subject) for item in verdict.findings]


choices = st.builds(
    lambda tags, modalities, bright: SampleFacts(
        {**TAGS, **tags}, modalities, () if bright is None else (bright,)
    ),
    st.fixed_dictionaries(
        {
            "sensor": st.sampled_from(["a", "b", "", "x\x00"]),
            "channels": st.sampled_from(["RGB", "ir+rgb", "RGB+IR"]),
        }
    ),
    st.sets(st.sampled_from(["image", "text", "audio"]), min_size=1),
    st.none() | st.floats(0, 255),
)
samples = st.lists(choices, max_size=60)


@given(samples)
@settings(max_examples=25)
def test_the_same_lineage_shows_no_difference(found: list[SampleFacts]) -> None:
    good = [item for item in found if item.tags["sensor"] in ("a", "b")]
    whole = summary(*good)
    verdict = compare_lineage(whole, whole, LineageSettings(minimum_samples=1))
    assert verdict.outcome is (Outcome.PASS if good else Outcome.INCONCLUSIVE)


@given(samples, st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_the_order_of_samples_does_not_matter(
    found: list[SampleFacts], order: random.Random
) -> None:
    shuffled = list(found)
    order.shuffle(shuffled)
    assert canonical_json(summary(*shuffled)) == canonical_json(summary(*found))


@given(samples, samples, samples)
@settings(max_examples=50)
def test_merging_is_associative_commutative_and_the_same_as_counting_at_once(
    one: list[SampleFacts], two: list[SampleFacts], three: list[SampleFacts]
) -> None:
    a, b, c = summary(*one), summary(*two), summary(*three)
    whole = canonical_json(summary(*one, *two, *three))
    assert canonical_json(merge(merge(a, b), c)) == whole
    assert canonical_json(merge(a, merge(b, c))) == whole
    assert canonical_json(merge(c, merge(b, a))) == whole


@pytest.mark.parametrize(
    ("training", "serving", "shifted"),
    [
        ({"a": 50, "b": 50}, {"a": 50, "b": 50}, False),
        ({"a": 50, "b": 50}, {"a": 45, "b": 55}, False),  # within chance
        ({"a": 5000, "b": 5000}, {"a": 4700, "b": 5300}, False),  # certain, and too small to matter
        ({"a": 90, "b": 10}, {"a": 50, "b": 50}, True),
        ({"a": 300, "b": 300}, {"a": 180, "b": 420}, True),
        ({"a": 90_000, "b": 90_000}, {"a": 50_000, "b": 90_000}, True),  # by chi-square
    ],
)
def test_a_distribution_shifted_where_it_matters_and_chance_does_not_explain_it(
    training: dict[str, int], serving: dict[str, int], shifted: bool
) -> None:
    verdict = compare_lineage(_scaled(training), _scaled(serving))
    expected = [("distribution-shifted", "sensor")] if shifted else []
    assert codes(verdict) == expected
    assert verdict.outcome is (Outcome.WARN if shifted else Outcome.PASS)


def _scaled(counts: dict[str, int]) -> LineageSummary:
    """Big counts by merging a summary with itself, as parts of a stream would be."""
    step = max(1, sum(counts.values()) // 1000)
    small = {value: count // step for value, count in counts.items()}
    part, whole = mixed(small), mixed(small)
    for _ in range(step - 1):
        whole = merge(whole, part)
    return whole


def test_a_shift_may_be_made_to_fail_for_a_watch_that_counts_failures() -> None:
    rules = LineageSettings(shift_outcome=Outcome.FAIL)
    verdict = compare_lineage(mixed({"a": 90, "b": 10}), mixed({"a": 50, "b": 50}), rules)
    assert verdict.outcome is Outcome.FAIL


def test_tags_that_trade_places_are_seen_jointly_where_each_alone_stayed() -> None:
    def lit(a: str, b: str) -> LineageSummary:
        return summary(
            *(facts(sensor="a", lighting=a) for _ in range(60)),
            *(facts(sensor="b", lighting=b) for _ in range(60)),
        )

    verdict = compare_lineage(lit("day", "night"), lit("night", "day"))
    assert codes(verdict) == [("distribution-shifted", "joint")]


def test_other_modalities_together_are_a_shift_and_a_new_pattern() -> None:
    both = summary(*(facts("image", "text") for _ in range(80)))
    alone = summary(*(facts("image", "text") for _ in range(40)), *(facts("text"),) * 40)
    assert codes(compare_lineage(both, alone)) == [
        ("new-modalities", "text"), ("distribution-shifted", "modalities"),
    ]  # fmt: skip


@pytest.mark.parametrize("count", [1, 29])
def test_below_the_minimum_nothing_is_decided_but_hard_facts_still_block(count: int) -> None:
    training = mixed({"camera": 100})
    few = mixed({"camera": count})
    assert compare_lineage(training, few).outcome is Outcome.INCONCLUSIVE
    infrared = summary(*(facts(channels="RGB+IR") for _ in range(count)))
    verdict = compare_lineage(training, infrared)
    assert verdict.outcome is Outcome.FAIL
    assert ("unseen-channels", "IR+RGB") in codes(verdict)


def test_nothing_served_is_inconclusive() -> None:
    assert compare_lineage(mixed({"a": 50}), summary()).outcome is Outcome.INCONCLUSIVE


def test_one_dark_camera_among_many_is_named_though_the_whole_stays_bright() -> None:
    def cameras(dark: float) -> LineageSummary:
        return summary(
            *(
                facts(
                    sensor=f"camera-{number}",
                    brightness=[(dark if number == 7 else 142.3) + turn % 5 - 2],
                )
                for number in range(20)
                for turn in range(15)
            )
        )

    verdict = compare_lineage(cameras(142.3), cameras(89.7))
    assert codes(verdict) == [("brightness-shift", "sensor=camera-7")]
    assert verdict.findings[0].measured == 89.7
    assert compare_lineage(cameras(142.3), cameras(142.3)).outcome is Outcome.PASS


def test_a_letter_that_only_looks_the_same_is_another_value_and_the_finding_says_so() -> None:
    verdict = compare_lineage(mixed({"camera": 60}), mixed({"camera": 59, "сamera": 1}))
    (found,) = verdict.findings
    assert found.code == "new-sensor"
    assert "looks like camera" in str(found.measured)
    channels = compare_lineage(
        mixed({"RGB": 60}, "channels"), mixed({"RGB": 59, "RGВ": 1}, "channels")
    )
    assert channels.outcome is Outcome.FAIL


def test_full_width_letters_and_stray_blanks_make_no_new_value() -> None:
    verdict = compare_lineage(mixed({"camera a": 60}), mixed({"ｃａｍｅｒａ　 a ": 60}))
    assert verdict.outcome is Outcome.PASS


@pytest.mark.slow
def test_very_many_values_are_bounded_and_decide_nothing() -> None:
    tally = LineageTally()
    for number in range(100_000):
        tally.add(facts(sensor=f"camera-{number}"))
    many = tally.summary()
    assert len(canonical_json(many)) < 1_000_000
    assert many.category("sensor").samples == 100_000
    verdict = compare_lineage(mixed({"camera": 60}), many)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    found = Counter(item.code for item in verdict.findings)
    assert found["too-many-values"] == 1
    assert found["new-sensor"] == MAX_NAMED + 1


def test_of_too_many_values_a_part_is_not_called_unseen_for_having_been_dropped() -> None:
    numbers = range(5000)
    whole = summary(*(facts(source=f"site-{number}") for number in numbers))
    part = summary(*(facts(source=f"site-{number}") for number in numbers[::50]))
    assert "new-source" not in {code for code, _ in codes(compare_lineage(whole, part))}


def test_what_served_samples_lack_is_refused_or_left_open_as_the_settings_say() -> None:
    training = mixed({"camera": 60})
    bare = summary(*(facts(sensor="") for _ in range(60)))
    assert ("missing-tag", "sensor") in codes(compare_lineage(training, bare))
    assert compare_lineage(training, bare).outcome is Outcome.FAIL
    open_ = LineageSettings(missing_outcome=Outcome.INCONCLUSIVE)
    assert compare_lineage(training, bare, open_).outcome is Outcome.INCONCLUSIVE


def test_encoders_that_prepare_otherwise_than_training_s_block() -> None:
    one, other = digest_bytes(b"224 px"), digest_bytes(b"240 px")
    training = preprocessed_by(mixed({"camera": 60}), {"image": one})
    same, another = (preprocessed_by(mixed({"camera": 60}), {"image": d}) for d in (one, other))
    assert compare_lineage(training, same).outcome is Outcome.PASS
    verdict = compare_lineage(training, another)
    assert (verdict.outcome, codes(verdict)) == (
        Outcome.FAIL, [("preprocessing-differs", "encoder.image")],
    )  # fmt: skip


@pytest.mark.slow
def test_unchanged_lineage_alarms_no_more_often_than_it_says() -> None:
    rng = random.Random(5)
    alarms = 0
    for _ in range(200):
        sides = [
            summary(
                *(
                    facts(
                        sensor=rng.choice("abcdefgh"),
                        lighting=rng.choice(["day", "night"]),
                        source=rng.choice("xyz"),
                    )
                    for _ in range(60)
                )
            )
            for _ in range(2)
        ]
        rules = LineageSettings(false_alarm_rate=0.05, shift_effect=0.0)
        alarms += any(c == "distribution-shifted" for c, _ in codes(compare_lineage(*sides, rules)))
    assert alarms <= 20  # 5 % of 200 are 10; above 20 has a chance of a thousandth
