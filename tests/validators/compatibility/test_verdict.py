from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.compatibility.adapters import (
    AdapterChoice,
    AdapterKind,
    AdapterMeasurement,
    AdapterRecord,
)
from validators.compatibility.estimates import Estimate, share_of
from validators.compatibility.measured import (
    CompatibilityMeasurement,
    CompatibilityWord,
    Geometry,
    HalfCheck,
    OutputDrift,
    Retrieval,
    SelfCheck,
    Spread,
    StaticDifference,
)
from validators.compatibility.spaces import judge_choice
from validators.compatibility.verdict import assess_compatibility, assess_first_version
from validators.compatibility.words import CompatibilitySettings, lower_share, word_of
from validators.contracts.digest import digest_bytes
from validators.contracts.origin import VectorOrigin
from validators.contracts.tensors import Meaning
from validators.contracts.verdict import Outcome

SETTINGS = CompatibilitySettings()
SPREAD = Spread(12.0, 0.6)
ANY = digest_bytes(b"")
ORIGIN = VectorOrigin(ANY, ANY)
SAME = Geometry(
    output="features", same_space=False, old_dim=1280, new_dim=1280, items=60, duplicates=0,
    left_out_old=0, left_out_new=0, views=1, neighbours=10,
    cosine=Estimate(0.999, 0.998, 1.0, 60), rank_correlation=Estimate(0.99, 0.98, 1.0, 60),
    overlap=Estimate(0.97, 0.95, 0.99, 60),
    retrievals=(Retrieval("new", "old", share_of(60, 60), share_of(60, 60)),),
    flips_mixed=share_of(0, 60), flips_reindexed=share_of(0, 60),
    kept=share_of(60, 60), adapted=share_of(60, 60), adapted_cosine=0.99, new_spread=SPREAD,
)  # fmt: skip
MAPPED = replace(
    SAME,
    cosine=Estimate(0.1, 0.0, 0.2, 60),
    kept=share_of(2, 60),
    overlap=Estimate(0.5, 0.4, 0.6, 60),
)
FOREIGN = replace(MAPPED, adapted=share_of(24, 60))
ADAPTER = AdapterRecord(
    "image", "features", ORIGIN, ORIGIN, 1280, 1280,
    AdapterMeasurement(
        AdapterKind.PROCRUSTES, 112, 48, 10, share_of(46, 48), share_of(48, 48), share_of(48, 48),
        share_of(48, 48), share_of(46, 48), share_of(2, 48),
        Estimate(0.9, 0.89, 0.91, 48), 0.2, 1280 * 1280,
    ),
    (), ANY, ANY, ANY, ANY,
)  # fmt: skip
FITTED = replace(SETTINGS, adapters=(ADAPTER,))
COLLAPSED = replace(SAME, new_spread=Spread(1.0, 0.0))
DRIFT = OutputDrift("features", Meaning.GLOBAL_EMBEDDING, 0.01, 0.999, 0.0, 0.0)
CHECK = SelfCheck("image", "1.0.0", 40, 0.0, (HalfCheck("features", SPREAD, SPREAD, 1.0),))


def measured(geometry: Geometry, drift: OutputDrift = DRIFT) -> CompatibilityMeasurement:
    return CompatibilityMeasurement("image", "1.0.0", "1.1.0", 60, (drift,), (geometry,), (), ())


def few(geometry: Geometry, kept: int, found: int) -> Geometry:
    return replace(
        geometry, items=found, kept=share_of(kept, found), adapted=share_of(found, found)
    )


@pytest.mark.parametrize(
    ("geometry", "word"),
    [
        (SAME, CompatibilityWord.COMPATIBLE),
        (MAPPED, CompatibilityWord.ADAPTER),
        (FOREIGN, CompatibilityWord.REINDEX),
        (replace(MAPPED, kept=None, cosine=None), CompatibilityWord.ADAPTER),
        (COLLAPSED, CompatibilityWord.BLOCK),
        (few(SAME, 16, 16), CompatibilityWord.COMPATIBLE),
        (few(SAME, 15, 16), CompatibilityWord.ADAPTER),
        (few(SAME, 15, 15), None),
        (replace(MAPPED, adapted=share_of(17, 20)), CompatibilityWord.REINDEX),
        (replace(SAME, overlap=Estimate(0.75, 0.69, 0.8, 60)), CompatibilityWord.ADAPTER),
        (replace(SAME, cosine=Estimate(0.99, 0.97, 1.0, 60)), CompatibilityWord.ADAPTER),
    ],
)
def test_geometry_becomes_one_of_four_words(
    geometry: Geometry, word: CompatibilityWord | None
) -> None:
    assert word_of(geometry, SETTINGS) is word


@pytest.mark.parametrize(
    ("geometry", "settings", "outcome", "codes"),
    [
        (SAME, SETTINGS, Outcome.PASS, []),
        (MAPPED, SETTINGS, Outcome.WARN, ["adapter-needed"]),
        (MAPPED, FITTED, Outcome.PASS, ["adapter-registered"]),
        (FOREIGN, FITTED, Outcome.PASS, ["adapter-registered"]),
        (replace(MAPPED, output="other"), FITTED, Outcome.WARN, ["adapter-needed"]),
        (MAPPED, replace(FITTED, found_share=0.93), Outcome.WARN, ["adapter-needed"]),
        (replace(SAME, left_out_old=1), SETTINGS, Outcome.WARN, ["old-not-finite"]),
        (replace(SAME, flips_reindexed=share_of(30, 60)), SETTINGS, Outcome.WARN, ["finds-less"]),
        (FOREIGN, SETTINGS, Outcome.FAIL, ["reindex"]),
        (FOREIGN, replace(SETTINGS, catalogue_reencoded=True), Outcome.WARN, ["reindex"]),
        (replace(FOREIGN, same_space=True), SETTINGS, Outcome.FAIL, ["reindex",
                                                                     "space-name-reused"]),
        (COLLAPSED, SETTINGS, Outcome.FAIL, ["collapsed"]),
        (few(SAME, 5, 5), SETTINGS, Outcome.INCONCLUSIVE, ["too-few-items"]),
        (
            few(SAME, 5, 5),
            replace(SETTINGS, catalogue_reencoded=True),
            Outcome.WARN,
            ["too-few-items"],
        ),
    ],
)  # fmt: skip
def test_each_word_has_its_outcome(
    geometry: Geometry, settings: CompatibilitySettings, outcome: Outcome, codes: list[str]
) -> None:
    verdict = assess_compatibility(measured(geometry), settings)
    assert (verdict.outcome, [item.code for item in verdict.findings]) == (outcome, codes)
    assert all(item.subject == f"image.{geometry.output}" for item in verdict.findings)


def test_a_reindex_may_be_waived_and_a_block_may_not() -> None:
    (reindex,) = assess_compatibility(measured(FOREIGN), SETTINGS).findings
    (block,) = assess_compatibility(measured(COLLAPSED), SETTINGS).findings
    assert reindex.waivable and not block.waivable


@pytest.mark.parametrize(
    ("drift", "outcome", "code"),
    [
        (replace(DRIFT, linf_drift=0.031), Outcome.WARN, "linf-drift"),
        (replace(DRIFT, nonfinite_new=1e-6), Outcome.FAIL, "not-finite"),
        (replace(DRIFT, linf_drift=None, nonfinite_new=1.0), Outcome.FAIL, "not-finite"),
        (replace(DRIFT, linf_drift=None), Outcome.INCONCLUSIVE, "nothing-measured"),
    ],
)
def test_outputs_are_judged_by_what_they_hold(
    drift: OutputDrift, outcome: Outcome, code: str
) -> None:
    verdict = assess_compatibility(replace(measured(SAME, drift), geometries=()), SETTINGS)
    assert verdict.outcome is outcome and [item.code for item in verdict.findings] == [code]


@pytest.mark.parametrize(
    ("what", "outcome"), [("preprocess.size", Outcome.WARN), ("modality", Outcome.FAIL)]
)
def test_declared_differences_are_findings(what: str, outcome: Outcome) -> None:
    changed = replace(measured(SAME), differences=(StaticDifference(what, "224", "240"),))
    assert assess_compatibility(changed, SETTINGS).outcome is outcome


def test_a_lost_output_fails() -> None:
    verdict = assess_compatibility(replace(measured(SAME), lost_outputs=("logits",)), SETTINGS)
    assert verdict.outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("check", "champion", "outcome", "code"),
    [
        (CHECK, False, Outcome.WARN, "no-predecessor"),
        (CHECK, True, Outcome.ERROR, "not-compared"),
        (replace(CHECK, items=0, halves=()), False, Outcome.INCONCLUSIVE, "nothing-measured"),
        (replace(CHECK, nonfinite=0.1), False, Outcome.FAIL, "not-finite"),
        (
            replace(CHECK, halves=(HalfCheck("features", SPREAD, Spread(1.0, 0.0), 1.0),)),
            False,
            Outcome.FAIL,
            "collapsed",
        ),
        (
            replace(CHECK, halves=(HalfCheck("features", SPREAD, SPREAD, 1.9),)),
            False,
            Outcome.WARN,
            "halves-differ",
        ),
    ],
)
def test_a_first_version_becomes_the_reference_only_without_a_champion(
    check: SelfCheck, champion: bool, outcome: Outcome, code: str
) -> None:
    verdict = assess_first_version(check, SETTINGS, champion_exists=champion)
    assert verdict.outcome is outcome and code in [item.code for item in verdict.findings]


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_lower_bound_is_below_the_share_and_grows_with_hits(hits: int, more: int) -> None:
    total = hits + more
    bound = lower_share(hits, total)
    assert 0 <= bound <= (hits / total if total else 0) + 1e-12
    assert hits == 0 or lower_share(hits - 1, total) <= bound


@given(st.integers(0, 60), st.floats(-1, 1), st.floats(0, 1), st.integers(0, 60), st.booleans())
def test_no_changed_space_passes_unless_its_adapter_was_fitted(
    hits: int, cosine: float, overlap: float, adapted: int, reencoded: bool
) -> None:
    geometry = replace(
        SAME,
        kept=share_of(hits, 60),
        cosine=Estimate(cosine, cosine, cosine, 60),
        overlap=Estimate(overlap, overlap, overlap, 60),
        adapted=share_of(adapted, 60),
    )
    settings = replace(SETTINGS, catalogue_reencoded=reencoded)
    verdict = assess_compatibility(measured(geometry), settings)
    if verdict.outcome is Outcome.PASS:
        assert word_of(geometry, settings) is CompatibilityWord.COMPATIBLE


def test_what_a_word_costs_stands_beside_it() -> None:
    slow = replace(measured(FOREIGN), encode_new_ms=20.0)
    (finding,) = assess_compatibility(slow, replace(SETTINGS, stored_items=5000)).findings
    assert "5000 items take about 100 s, 20 ms each" in finding.remedy
    metrics = dict(assess_compatibility(slow, replace(SETTINGS, stored_items=5000)).metrics)
    assert metrics["reindex_s"] == 100 and metrics["reindex_s_per_1000"] == 20
    fitted = dict(assess_compatibility(measured(MAPPED), FITTED).metrics)
    assert fitted["features_adapter_latency_ms"] == 0.2
    assert fitted["features_adapter_recall_lost"] == pytest.approx(2 / 48)


@pytest.mark.parametrize(
    ("choice", "reencoded", "outcome", "code"),
    [
        (AdapterChoice(None, "too few", 20), False, Outcome.INCONCLUSIVE, "adapter-too-few-pairs"),
        (AdapterChoice(None, "too few", 20), True, Outcome.WARN, "adapter-too-few-pairs"),
        (AdapterChoice(None, "keeps 0.5"), False, Outcome.WARN, "adapter-not-enough"),
    ],
)
def test_why_there_is_no_adapter_is_said(
    choice: AdapterChoice, reencoded: bool, outcome: Outcome, code: str
) -> None:
    settings = replace(SETTINGS, catalogue_reencoded=reencoded)
    (finding,) = judge_choice("image.features", choice, 44, settings)
    assert (finding.outcome, finding.code) == (outcome, code)
    assert judge_choice("image.features", AdapterChoice(ADAPTER.measured, ""), 99, settings) == []
