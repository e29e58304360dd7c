from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.validators.quality.rows import dataset, own, row, rows
from validators.contracts.dataset import Dataset
from validators.contracts.quality import LabelRules, QualityRules
from validators.contracts.verdict import Finding, Outcome, Verdict, Waiver, apply_waivers
from validators.quality.gate import (
    PAGES,
    RESULTS,
    SUITES,
    Surroundings,
    assess_quality,
    examine,
)
from validators.quality.settings import QualitySettings
from validators.quality.words import MAX_NAMED, Severity, Suite, expect

pytestmark = pytest.mark.slow  # Great Expectations takes seconds to import


def found(verdict: Verdict) -> set[tuple[str, str]]:
    return {(item.code, item.subject) for item in verdict.findings}


def with_suite(suite: Suite) -> QualitySettings:
    return QualitySettings(suites={suite.name: suite})


def test_good_measures_pass() -> None:
    data = dataset(row("a"), row("b", "image", "text", "audio"))
    verdict = assess_quality(data, QualitySettings(missing_rate=0.5))
    assert verdict.outcome is Outcome.PASS, verdict.findings
    assert dict(verdict.metrics)["expectations_unmet"] == 0


def test_an_empty_data_set_is_inconclusive() -> None:
    examined = examine(Dataset(()), QualitySettings(), Surroundings())
    assert examined.verdict.outcome is Outcome.INCONCLUSIVE
    assert PAGES not in examined.documents


def test_one_sample_is_judged_like_any_other() -> None:
    assert assess_quality(dataset(row("only"))).outcome is Outcome.PASS


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
    bad = replace(row("bad", modality), media=(own("bad", modality, **{measure: value}),))
    verdict = assess_quality(dataset(row("good", modality), bad))
    assert verdict.outcome is Outcome.FAIL
    failing = {item for item in verdict.findings if item.outcome is Outcome.FAIL}
    assert {(item.code, item.subject) for item in failing} == {(code, "bad")}


def test_a_missing_measure_is_never_taken_for_a_good_one() -> None:
    bare = replace(own("bare", "image"), measures=())
    verdict = assess_quality(dataset(replace(row("bare"), media=(bare,)), row("full", "image")))
    assert ("missing-measure-sharpness", "bare") in found(verdict)


def test_a_wrong_media_type_fails() -> None:
    odd = replace(own("odd", "image"), media_type="image/tiff")
    verdict = assess_quality(dataset(replace(row("odd"), media=(odd,))))
    assert found(verdict) == {("media-type-media-type", "odd")}


@pytest.mark.parametrize(
    ("missing", "samples", "outcome"),
    [
        (1, 20, Outcome.PASS),  # exactly the bearable share
        (2, 20, Outcome.INCONCLUSIVE),  # 10 %, at least 2.8 %: beyond it, or by chance
        (5, 20, Outcome.FAIL),  # 25 %, at least 11.2 %
        (3, 5, Outcome.INCONCLUSIVE),  # at least 23 %, of fewer samples than decide
    ],
)
def test_the_interval_of_the_missing_share_decides(
    missing: int, samples: int, outcome: Outcome
) -> None:
    silent = rows(missing, "image", prefix="silent")
    full = rows(samples - missing, prefix="full")
    verdict = assess_quality(dataset(*silent, *full), QualitySettings(missing_rate=0.05))
    assert verdict.outcome is outcome
    wanted = set() if outcome is Outcome.PASS else {("missing-modality-text", "samples")}
    assert found(verdict) == wanted
    assert all(silent[0].id in str(item.measured) for item in verdict.findings)


def test_an_expected_modality_that_no_sample_has_fails() -> None:
    verdict = assess_quality(dataset(*rows(20)), QualitySettings(expected=("audio",)))
    assert ("missing-modality-audio", "samples") in found(verdict)
    assert verdict.outcome is Outcome.FAIL


def test_a_repeated_id_fails() -> None:
    verdict = assess_quality(Dataset((row("twin"), row("twin"))))
    assert ("duplicate-id-sample", "twin") in found(verdict)
    assert verdict.outcome is Outcome.FAIL


def test_a_modality_without_a_suite_is_an_error_not_a_pass() -> None:
    assert assess_quality(dataset(row("a", "smell"))).outcome is Outcome.ERROR


def test_many_bad_rows_are_named_in_the_evidence_and_counted_in_the_findings() -> None:
    bad = [
        replace(item, media=(own(item.id, "image", brightness=0.0),)) for item in rows(150, "image")
    ]
    examined = examine(dataset(*bad), QualitySettings(), Surroundings(), pages=False)
    dark = [f for f in examined.verdict.findings if f.code == "out-of-range-brightness"]
    assert len(dark) == MAX_NAMED + 1
    assert dark[-1].subject == f"image+{150 - MAX_NAMED}"
    results = json.loads(examined.documents[RESULTS])
    (image,) = [item for item in results["suites"] if item["name"] == "image"]
    (failing,) = [item for item in image["failing"] if item["code"] == dark[0].code]
    assert failing["samples"] == [item.id for item in bad]


def test_a_waiver_of_the_rest_does_not_cover_a_larger_rest() -> None:
    def verdict(count: int) -> Verdict:
        bad = [
            replace(item, media=(own(item.id, "image", contrast=0.0),))
            for item in rows(count, "image")
        ]
        return assess_quality(dataset(*bad))

    waivers = [Waiver(item.name, "ana", "seen", 10.0) for item in verdict(25).findings]
    assert apply_waivers(verdict(25), waivers, 0).outcome is Outcome.WARN
    assert apply_waivers(verdict(26), waivers, 0).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("severity", "outcome"),
    [
        (Severity.CRITICAL, Outcome.FAIL),
        (Severity.WARNING, Outcome.WARN),
        (Severity.INFO, Outcome.PASS),
    ],
)
def test_the_severity_of_an_expectation_is_the_outcome(
    severity: Severity, outcome: Outcome
) -> None:
    limit = expect(
        "expect_column_values_to_be_between", "small", severity, column="width_px", min_value=100
    )
    verdict = assess_quality(dataset(row("a", "image")), with_suite(Suite("image", (limit,))))
    assert verdict.outcome is outcome
    assert ("small-width-px", "a") in found(verdict)


def test_a_column_that_nobody_measured_is_an_error_however_wide_the_range() -> None:
    limit = expect("expect_column_values_to_be_between", "r", column="hue", min_value=-1e9)
    verdict = assess_quality(dataset(row("a", "image")), with_suite(Suite("image", (limit,))))
    assert verdict.outcome is Outcome.ERROR


def test_a_column_of_nothing_but_nan_is_an_error_and_an_empty_column() -> None:
    blind = [
        replace(item, media=(own(item.id, "image", brightness=float("nan")),))
        for item in rows(3, "image")
    ]
    verdict = assess_quality(dataset(*blind))
    assert verdict.outcome is Outcome.FAIL
    assert {("empty-column", "image.brightness"), ("missing-measure-brightness", "s00000")} <= (
        found(verdict)
    )
    assert "not-evaluated" in {item.code for item in verdict.findings}


def test_a_mean_over_the_column_is_judged_as_a_whole() -> None:
    mean = expect("expect_column_mean_to_be_between", "mean", column="brightness", max_value=100)
    verdict = assess_quality(dataset(*rows(5, "image")), with_suite(Suite("image", (mean,))))
    assert ("mean-brightness", "image") in found(verdict)


def test_notes_and_rules_stand_beside_the_suites() -> None:
    note = Finding("quality", "stale-suite", "image", Outcome.WARN, "other", "same", "Write anew.")
    settings = QualitySettings(rules=QualityRules(labels=LabelRules(tag="kind")))
    data = dataset(*(row(f"s{n}", kind="cat" if n else "dog") for n in range(30)))
    verdict = examine(data, settings, Surroundings(notes=(note,)), pages=False).verdict
    assert {("stale-suite", "image"), ("class-imbalance", "cat")} <= found(verdict)
    assert dict(verdict.metrics)["classes"] == 2


def test_the_documents_are_the_same_every_time() -> None:
    data = dataset(*rows(4), replace(row("dark"), media=(own("dark", "image", brightness=0.0),)))
    first = examine(data, QualitySettings(missing_rate=0.5), Surroundings())
    again = examine(data, QualitySettings(missing_rate=0.5), Surroundings())
    assert set(first.documents) == {RESULTS, SUITES, PAGES}
    assert first == again


def test_a_hundred_thousand_samples_are_judged_in_bounded_findings() -> None:
    draw = np.random.default_rng(0)
    base = row("base", "image")
    values = draw.uniform(0, 255, 100_000)
    many = [
        replace(base, id=f"s{n:06d}", media=(own(str(n), "image", brightness=float(value)),))
        for n, value in enumerate(values)
    ]
    verdict = assess_quality(dataset(*many))
    assert verdict.outcome is Outcome.FAIL
    assert len(verdict.findings) < 4 * MAX_NAMED
