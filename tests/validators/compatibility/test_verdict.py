from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.compatibility.measured import (
    CompatibilityMeasurement,
    CompatibilityWord,
    Geometry,
    HalfCheck,
    OutputDrift,
    SelfCheck,
    Spread,
    StaticDifference,
)
from validators.compatibility.verdict import assess_compatibility, assess_first_version
from validators.compatibility.words import CompatibilitySettings, lower_share, word_of
from validators.contracts.tensors import Meaning
from validators.contracts.verdict import Outcome

SETTINGS = CompatibilitySettings()
SPREAD = Spread(12.0, 0.6)
SAME = Geometry("features", False, 1280, 1280, 60, 0.999, 60, 10, 0.97, 30, 30, 0.99, SPREAD)
MAPPED = replace(SAME, cosine_mean=0.1, top1_hits=2, overlap=0.5)
FOREIGN = replace(MAPPED, adapted_hits=12)
COLLAPSED = replace(SAME, new_spread=Spread(1.0, 0.0))
DRIFT = OutputDrift("features", Meaning.GLOBAL_EMBEDDING, 0.01, 0.999, 0.0, 0.0)
CHECK = SelfCheck("image", "1.0.0", 40, 0.0, (HalfCheck("features", SPREAD, SPREAD, 1.0),))


def measured(geometry: Geometry, drift: OutputDrift = DRIFT) -> CompatibilityMeasurement:
    return CompatibilityMeasurement("image", "1.0.0", "1.1.0", 60, (drift,), (geometry,), (), ())


@pytest.mark.parametrize(
    ("geometry", "word"),
    [
        (SAME, CompatibilityWord.COMPATIBLE),
        (MAPPED, CompatibilityWord.ADAPTER),
        (FOREIGN, CompatibilityWord.REINDEX),
        (replace(MAPPED, top1_hits=None, cosine_mean=None), CompatibilityWord.ADAPTER),
        (COLLAPSED, CompatibilityWord.BLOCK),
        (replace(SAME, items=11, top1_hits=11), CompatibilityWord.COMPATIBLE),
        (replace(SAME, items=11, top1_hits=10), CompatibilityWord.ADAPTER),
        (replace(SAME, items=10, top1_hits=10), None),
        (replace(MAPPED, items=20, held_out=10, adapted_hits=10), CompatibilityWord.REINDEX),
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
        (MAPPED, replace(SETTINGS, adapter_fitted=True), Outcome.PASS, []),
        (FOREIGN, SETTINGS, Outcome.FAIL, ["reindex"]),
        (FOREIGN, replace(SETTINGS, catalogue_reencoded=True), Outcome.WARN, ["reindex"]),
        (replace(FOREIGN, same_space=True), SETTINGS, Outcome.FAIL, ["reindex",
                                                                     "space-name-reused"]),
        (COLLAPSED, SETTINGS, Outcome.FAIL, ["collapsed"]),
        (replace(SAME, items=5, top1_hits=5), SETTINGS, Outcome.INCONCLUSIVE, ["too-few-items"]),
        (
            replace(SAME, items=5, top1_hits=5),
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
    assert all(item.subject == "image.features" for item in verdict.findings)


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


@given(st.integers(0, 60), st.floats(-1, 1), st.floats(0, 1), st.integers(0, 30), st.booleans())
def test_no_changed_space_passes_unless_its_adapter_was_fitted(
    hits: int, cosine: float, overlap: float, adapted: int, reencoded: bool
) -> None:
    geometry = replace(
        SAME, top1_hits=hits, cosine_mean=cosine, overlap=overlap, adapted_hits=adapted
    )
    settings = replace(SETTINGS, catalogue_reencoded=reencoded)
    verdict = assess_compatibility(measured(geometry), settings)
    if verdict.outcome is Outcome.PASS:
        assert word_of(geometry, settings) is CompatibilityWord.COMPATIBLE
