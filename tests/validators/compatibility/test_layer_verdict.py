"""What was seen inside, judged: rates, precisions, peaks, drifts, differences."""

from __future__ import annotations

from tests.validators.compatibility.layer_values import layer, measured, trace, version
from validators.compatibility.layer_report import report_layers
from validators.compatibility.layer_verdict import assess_layers
from validators.compatibility.measured import StaticDifference
from validators.contracts.digest import canonical_json
from validators.contracts.engine import Precision
from validators.contracts.verdict import Finding, Outcome, Verdict

GOOD = [layer("first"), layer("block", key=True), layer("output", key=True, output=True)]
BROKEN = [
    layer("first"), layer("block", key=True, inf=2, item_broken=(0, 2, 0, 0)),
    layer("output", key=True, output=True),
]  # fmt: skip
HALF = Precision.FP16


def named(verdict: Verdict, code: str) -> Finding:
    return next(item for item in verdict.findings if item.code == code)


def codes(verdict: Verdict) -> set[str]:
    return {item.code for item in verdict.findings if item.outcome > Outcome.PASS}


def test_a_finite_version_passes_and_says_what_so_few_items_leave_open() -> None:
    verdict = assess_layers(measured(version(trace(GOOD))))
    assert verdict.outcome is Outcome.PASS
    assert named(verdict, "none-not-finite").measured == "0 of 4 items: up to 53 %"
    assert 0.52 < dict(verdict.metrics)["fp32_nonfinite_items_upper_share"] < 0.53


def test_nan_under_a_precision_that_runs_blocks_for_good() -> None:
    both = version(trace(GOOD), trace(BROKEN, HALF))
    verdict = assess_layers(measured(both, planned=(HALF,)))
    found = named(verdict, "layer-not-finite")
    assert (found.outcome, found.waivable, found.subject) == (Outcome.FAIL, False, "image.block")
    assert str(found.measured).startswith("1 of 4 items: 25 %")
    assert "fp16 on torch" in str(found.measured)
    assert "Keep block in fp32" in found.remedy


def test_a_runtime_that_did_not_compute_in_half_proves_nothing_either_way() -> None:
    hidden = trace(BROKEN, HALF, runtime="onnxruntime", computed_in=Precision.FP32)
    clean = trace(GOOD, HALF, runtime="onnxruntime", computed_in=Precision.FP32)
    for half in (hidden, clean):
        verdict = assess_layers(measured(version(trace(GOOD), half), required=(HALF,)))
        assert codes(verdict) == {"precision-not-computed"}
        assert verdict.outcome is Outcome.INCONCLUSIVE


def test_a_precision_of_other_targets_that_nobody_computed_warns() -> None:
    verdict = assess_layers(measured(version(trace(GOOD)), planned=(HALF,)))
    assert named(verdict, "precision-not-computed").outcome is Outcome.WARN


def test_negative_infinity_is_a_mask_where_fp32_has_one_and_an_overflow_where_not() -> None:
    masked = layer("scores", masked=8, item_masked=(2,) * 4)
    plain = layer("scores")
    half = trace([masked], HALF)
    fine = assess_layers(measured(version(trace([masked]), half), planned=(HALF,)))
    overflow = assess_layers(measured(version(trace([plain]), half), planned=(HALF,)))
    assert codes(fine) == set()
    assert codes(overflow) == {"layer-not-finite"}


def test_what_is_broken_in_the_old_version_only_warns() -> None:
    verdict = assess_layers(measured(version(trace(GOOD)), version(trace(BROKEN), number="1.0.0")))
    assert named(verdict, "old-not-finite").outcome is Outcome.WARN
    assert "layer-not-finite" not in codes(verdict)


def test_an_activation_near_the_end_of_fp16_warns_where_fp16_will_run() -> None:
    high = [layer("first", linf=17_000.0)]
    alone = assess_layers(measured(version(trace(high))))
    half = assess_layers(measured(version(trace(high), trace(high, HALF)), planned=(HALF,)))
    assert codes(alone) == set()
    assert (codes(half), named(half, "headroom").measured) == ({"headroom"}, 17_000.0)


def test_a_key_layer_that_drifts_warns_and_names_where_the_versions_part() -> None:
    new = [
        layer("first"), layer("block", key=True, item_linf=(2.2,) * 4),
        layer("output", key=True, output=True, item_linf=(2.02,) * 4),
    ]  # fmt: skip
    verdict = assess_layers(
        measured(version(trace(new, turned=("block",))), version(trace(GOOD), number="1.0.0"))
    )
    found = named(verdict, "layer-linf-drift")
    assert (found.outcome, found.subject, found.limit) == (Outcome.WARN, "image.block", 0.03)
    assert "1 of 2 key layers" in str(found.measured)
    assert "part at Linear block; first before it still agreed" in found.remedy


def test_a_layer_that_is_not_key_may_drift() -> None:
    new = [layer("first", item_linf=(3.0,) * 4), *GOOD[1:]]
    verdict = assess_layers(measured(version(trace(new)), version(trace(GOOD))))
    assert verdict.outcome is Outcome.PASS


def test_static_differences_warn_and_epsilons_have_a_code_of_their_own() -> None:
    found = (
        StaticDifference("epsilon.norm_1", "1e-05 in LayerNorm", "1e-12"),
        StaticDifference("tokenizer.max_tokens", "128", "256"),
    )
    verdict = assess_layers(measured(version(trace(GOOD)), differences=found))
    assert codes(verdict) == {"norm-epsilon", "built-differently"}
    assert named(verdict, "norm-epsilon").subject == "image.epsilon.norm_1"
    assert verdict.outcome is Outcome.WARN


def test_a_version_that_crashed_is_an_error_and_nothing_traced_is_no_pass() -> None:
    verdict = assess_layers(measured(version(faults=("in torch fp32: died of SIGSEGV",))))
    failed = named(verdict, "version-failed")
    assert (failed.outcome, failed.waivable) == (Outcome.ERROR, False)
    assert "nothing-measured" in codes(verdict)


def test_the_report_is_the_same_bytes_for_the_same_measurement() -> None:
    def made() -> bytes:
        new, old = version(trace(BROKEN)), version(trace(GOOD), number="1.0.0")
        return canonical_json(report_layers(measured(new, old)))

    assert made() == made()
    assert b"1 of 4 items" in made()
