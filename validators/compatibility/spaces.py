"""What the gate says of one embedding's two spaces, with the cost of each word."""

from __future__ import annotations

from dataclasses import replace

from validators.compatibility.adapters import AdapterChoice, AdapterRecord
from validators.compatibility.figures import reindex_s
from validators.compatibility.measured import (
    CompatibilityMeasurement,
    CompatibilityWord,
    Geometry,
    Spread,
)
from validators.compatibility.words import (
    CompatibilitySettings,
    is_collapsed,
    items_needed,
    word_of,
)
from validators.contracts.digest import short
from validators.contracts.verdict import Finding, Outcome

GATE = "compatibility"


def judge_spaces(
    measured: CompatibilityMeasurement, settings: CompatibilitySettings
) -> list[Finding]:
    """The findings of every embedding that both versions have."""
    return [
        replace(finding, subject=f"{measured.encoder}.{geometry.output}")
        for geometry in measured.geometries
        for finding in _judge(measured, geometry, settings)
    ]


def judge_spread(subject: str, spread: Spread, settings: CompatibilitySettings) -> list[Finding]:
    """BLOCK where all vectors are one."""
    if not is_collapsed(spread, settings):
        return []
    return [
        Finding(
            GATE, "collapsed", subject, Outcome.FAIL,
            f"effective rank {spread.effective_rank:.2f}, distance {spread.distance_mean:.2g}",
            f"rank {settings.least_rank}, distance {settings.least_distance}",
            "Check the checkpoint and its preprocessing: all items get one vector.",
            waivable=False,
        )
    ]  # fmt: skip


def judge_choice(
    subject: str, choice: AdapterChoice, pairs: int, settings: CompatibilitySettings
) -> list[Finding]:
    """Why no adapter was registered, where none was."""
    if choice.chosen is not None:
        return []
    lacking = choice.missing_pairs
    if lacking:
        outcome = Outcome.WARN if settings.catalogue_reencoded else Outcome.INCONCLUSIVE
        return [
            Finding(
                GATE, "adapter-too-few-pairs", subject, outcome, pairs, pairs + lacking,
                f"Bring {lacking} more items, and an adapter is fitted for vectors stored "
                "elsewhere; or encode those again.",
            )
        ]  # fmt: skip
    return [
        Finding(
            GATE, "adapter-not-enough", subject, Outcome.WARN, choice.reason, settings.found_share,
            "Encode vectors stored elsewhere again: no adapter keeps enough of what they find.",
        )
    ]  # fmt: skip


def _judge(
    measured: CompatibilityMeasurement, geometry: Geometry, settings: CompatibilitySettings
) -> list[Finding]:
    word = word_of(geometry, settings)
    findings = [
        *_judge_word(measured, geometry, word, settings),
        *_left_out(geometry),
        *_finds_less(geometry, settings),
    ]
    if word in (CompatibilityWord.ADAPTER, CompatibilityWord.REINDEX) and geometry.same_space:
        findings.append(_reused_name(geometry))
    return findings


def _judge_word(
    measured: CompatibilityMeasurement,
    geometry: Geometry,
    word: CompatibilityWord | None,
    settings: CompatibilitySettings,
) -> list[Finding]:
    match word:
        case CompatibilityWord.COMPATIBLE:
            return []
        case CompatibilityWord.BLOCK:
            return judge_spread(geometry.output, geometry.new_spread, settings)
        case CompatibilityWord.ADAPTER:
            record = settings.adapter(geometry.output)
            return [_adapter_needed(geometry, settings) if record is None else _registered(record)]
        case CompatibilityWord.REINDEX:
            return [_changed_space(measured, geometry, settings)]
        case None:
            return [_too_few(geometry, settings)]


def _adapter_needed(geometry: Geometry, settings: CompatibilitySettings) -> Finding:
    return Finding(
        GATE, "adapter-needed", geometry.output, Outcome.WARN, _described(geometry),
        f"{settings.same_cosine} mean cosine as they are",
        "Fit the adapter from the new space to the old one, or encode the catalogue again.",
    )  # fmt: skip


def _registered(record: AdapterRecord) -> Finding:
    found = record.measured
    return Finding(
        GATE, "adapter-registered", record.output, Outcome.PASS,
        f"{found.kind.value}: {found.kept.describe()} of the right answers kept on "
        f"{found.held_out} held-out pairs, recall {found.first.value:.2f} against "
        f"{found.old_first.value:.2f}, {found.latency_ms:.2g} ms a vector",
        "the lower bound of what is kept",
        "Nothing for this service. Vectors stored elsewhere: send new ones through the adapter "
        f"engine {short(record.engine_key)}, or encode the stored ones again.",
    )  # fmt: skip


def _changed_space(
    measured: CompatibilityMeasurement, geometry: Geometry, settings: CompatibilitySettings
) -> Finding:
    outcome = Outcome.WARN if settings.catalogue_reencoded else Outcome.FAIL
    done = "Nothing: this bundle encodes its catalogue again. Encode vectors kept elsewhere too."
    todo = "Encode every stored vector with the new version; do not mix the two."
    remedy = done if outcome is Outcome.WARN else todo
    return Finding(
        GATE, "reindex", geometry.output, outcome, _described(geometry),
        f"{settings.found_share} of the right answers kept, as they are or through a map",
        f"{remedy} {_cost(measured, settings)}",
    )  # fmt: skip


def _cost(measured: CompatibilityMeasurement, settings: CompatibilitySettings) -> str:
    items = 1000 if settings.stored_items is None else settings.stored_items
    took_s = reindex_s(measured.encode_new_ms, items)
    return f"{items} items take about {took_s:.3g} s, {measured.encode_new_ms:.3g} ms each."


def _reused_name(geometry: Geometry) -> Finding:
    return Finding(
        GATE, "space-name-reused", geometry.output, Outcome.WARN, "another space",
        "one name for one space", "Give the new version's space a name of its own.",
    )  # fmt: skip


def _too_few(geometry: Geometry, settings: CompatibilitySettings) -> Finding:
    outcome = Outcome.WARN if settings.catalogue_reencoded else Outcome.INCONCLUSIVE
    needed = items_needed(settings)
    return Finding(
        GATE, "too-few-items", geometry.output, outcome, geometry.found_by_old,
        f"a lower bound of {settings.found_share}",
        f"Give the gate {needed} items at least that the old version finds: fewer cannot show that "
        "the spaces agree.",
    )  # fmt: skip


def _left_out(geometry: Geometry) -> list[Finding]:
    if not geometry.left_out_old:
        return []  # where the new version is not finite, the output's own finding blocks
    return [
        Finding(
            GATE, "old-not-finite", geometry.output, Outcome.WARN, geometry.left_out_old, 0,
            "Compare with a version that is finite on these items: they were left out.",
        )
    ]  # fmt: skip


def _finds_less(geometry: Geometry, settings: CompatibilitySettings) -> list[Finding]:
    """The new space by itself loses what the old one found, however the index is encoded."""
    limit = 1 - settings.found_share
    if geometry.flips_reindexed.low <= limit:
        return []
    return [
        Finding(
            GATE, "finds-less", geometry.output, Outcome.WARN,
            f"{geometry.flips_reindexed.describe()} of queries lost, all encoded again", limit,
            "Look at what the new version no longer tells apart before encoding anything again.",
        )
    ]  # fmt: skip


def _described(geometry: Geometry) -> str:
    kept = "dimensions differ" if geometry.kept is None else f"{geometry.kept.describe()} kept"
    return (
        f"{kept} as they are, {geometry.adapted.describe()} through a map, "
        f"{geometry.overlap.describe()} of neighbours in common, {geometry.items} items"
    )
