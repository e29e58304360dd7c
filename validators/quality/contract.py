"""Suites made from a pipeline's contracts: what each encoder can take, said as expectations.

    preprocessing kind   what follows from it
    image                a picture's sides against the square that the encoder sees
    log_mel              a recording's length against the window that it hears
    wordpiece            a text's words against the tokens that it reads
    the SLO class        how many modalities a sample may have

Beside these stand the ranges that hold for any medium of a modality: not black, not silent, not
empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from validators.contracts.encoder import PreprocessSpec
from validators.contracts.engine import Outside
from validators.contracts.pipeline import EncoderEntry, Pipeline
from validators.contracts.slo import CLASS_BOUNDS
from validators.contracts.tensors import Meaning
from validators.quality.words import SAMPLE, SAMPLES, Expectation, Facts, Severity, Suite, expect

MOST_ENLARGED = 16
"""A side may be this much smaller than the encoder's square; beyond, it shows nothing."""

OFTEN_ENLARGED = 2
SPECIAL_TOKENS = 2  # the start and the end of a text

OUT_OF_RANGE, MISSING_MEASURE, MEDIA_TYPE = "out-of-range", "missing-measure", "media-type"
MISSING_MODALITY, DUPLICATE_ID = "missing-modality", "duplicate-id"


@dataclass(frozen=True, slots=True)
class Usual:
    """What any medium of a modality has to be: IANA types and closed ranges of measures."""

    media_types: tuple[str, ...]
    ranges: tuple[tuple[str, float, float], ...]


USUAL: Mapping[str, Usual] = MappingProxyType(
    {
        "image": Usual(
            ("image/png",),
            (
                ("width_px", 16, 8192),
                ("height_px", 16, 8192),
                ("brightness", 1, 254.5),  # mean luma: neither a closed lens nor a white page
                ("contrast", 2, 128),  # standard deviation of luma: not one flat colour
                ("sharpness", 0.5, 1e6),  # variance of the Laplacian
            ),
        ),
        "audio": Usual(
            ("audio/wav", "application/vnd.modalgate.voice+json"),
            (
                ("duration_ms", 100, 60_000),
                ("rms_db", -60, 0),  # of full scale: not silence
                ("clipped_share", 0, 0.02),
            ),
        ),
        "text": Usual(("text/plain",), (("characters", 1, 10_000), ("words", 1, 2_000))),
    }
)


def contract_suites(pipeline: Pipeline, *, missing_rate: float | None = None) -> dict[str, Suite]:
    """The suite over all samples and one for each branch's modality, by name."""
    rate = pipeline.gates.quality_missing_rate if missing_rate is None else missing_rate
    modalities = tuple(branch.modality for branch in pipeline.branches)
    bounds = CLASS_BOUNDS[pipeline.slo.slo_class]
    made = {
        SAMPLES: samples_suite(
            modalities,
            rate,
            most=bounds.max_modalities,
            facts=(("slo.class", pipeline.slo.slo_class.value),),
        )
    }
    for branch in pipeline.branches:
        made[branch.modality] = _branch_suite(branch.modality, pipeline.encoder(branch.encoder))
    return made


def samples_suite(
    modalities: tuple[str, ...], missing_rate: float, *, most: int | None = None, facts: Facts = ()
) -> Suite:
    """What samples have to be, whatever media they have. `most` modalities at once, if bounded."""
    expectations = [expect("expect_column_values_to_be_unique", DUPLICATE_ID, column=SAMPLE)]
    expectations += [
        expect(
            "expect_column_values_to_not_be_null",
            MISSING_MODALITY,
            column=name,
            mostly=round(1 - missing_rate, 9),
        )
        for name in modalities
    ]
    if most is not None:
        expectations.append(
            expect(
                "expect_column_values_to_be_between", "too-many-modalities", Severity.WARNING,
                column="modalities", min_value=1, max_value=most,
            )
        )  # fmt: skip
    stated: Facts = (("missing_rate", missing_rate), ("modalities", ", ".join(modalities)))
    return Suite(SAMPLES, tuple(expectations), tuple(sorted(stated + facts)))


def usual_suite(modality: str) -> Suite | None:
    """What any medium of the modality has to be; None where nothing is known of it."""
    if modality not in USUAL:
        return None
    return Suite(modality, tuple(_usual(USUAL[modality], {})), (("modality", modality),))


def _branch_suite(modality: str, entry: EncoderEntry) -> Suite:
    spec = entry.contract.preprocess
    limits, more, facts = _LIMITS.get(spec.kind, _nothing)(entry)
    usual = USUAL.get(modality, Usual((), ()))
    stated: dict[str, str | int | float] = {
        "modality": modality,
        "encoder": entry.name,
        "preprocess.kind": spec.kind,
        **facts,
    }
    if usual.media_types:
        stated["media_types"] = ", ".join(usual.media_types)
    known = {measure for measure, _, _ in usual.ranges}
    own = [item for item in more if item.column in known]  # what is measured of this modality
    return Suite(modality, (*_usual(usual, limits), *own), tuple(sorted(stated.items())))


Limits = Mapping[str, tuple[float, float]]
"""Narrower ranges of measures than the usual ones."""


def _usual(usual: Usual, limits: Limits) -> Iterator[Expectation]:
    if usual.media_types:
        yield expect(
            "expect_column_values_to_be_in_set", MEDIA_TYPE,
            column="media_type", value_set=usual.media_types,
        )  # fmt: skip
    else:
        yield expect("expect_column_values_to_not_be_null", MEDIA_TYPE, column="media_type")
    for measure, low, high in usual.ranges:
        own_low, own_high = limits.get(measure, (low, high))
        yield expect("expect_column_values_to_not_be_null", MISSING_MEASURE, column=measure)
        yield expect(
            "expect_column_values_to_be_between", OUT_OF_RANGE,
            column=measure, min_value=max(low, own_low), max_value=min(high, own_high),
        )  # fmt: skip


Derived = tuple[Limits, list[Expectation], dict[str, str | int | float]]


def _nothing(entry: EncoderEntry) -> Derived:
    del entry
    return {}, [], {}


def _picture(entry: EncoderEntry) -> Derived:
    """Pictures far smaller than the encoder's square hold less than it looks for."""
    size = int(_option(entry.contract.preprocess, "size", 224))
    least = math.ceil(size / MOST_ENLARGED)
    limits = dict.fromkeys(("width_px", "height_px"), (float(least), math.inf))
    often = [
        expect(
            "expect_column_values_to_be_between", "enlarged", Severity.WARNING,
            column=name, min_value=math.ceil(size / OFTEN_ENLARGED), mostly=0.9,
        )
        for name in limits
    ]  # fmt: skip
    fit = _option(entry.contract.preprocess, "fit", "letterbox")
    return limits, often, {"preprocess.size": size, "preprocess.fit": fit}


def _recording(entry: EncoderEntry) -> Derived:
    """Recordings longer than the window are refused by the encoder, or cut."""
    spec = entry.contract.preprocess
    window_ms = int(_option(spec, "seconds", 30)) * 1000
    longer = _option(spec, "longer", "refuse")
    facts: dict[str, str | int | float] = {
        "preprocess.window_ms": window_ms, "preprocess.longer": longer,
    }  # fmt: skip
    if longer == "refuse":
        return {"duration_ms": (0, window_ms)}, [], facts
    cut = expect(
        "expect_column_values_to_be_between", "cut-short", Severity.WARNING,
        column="duration_ms", max_value=window_ms,
    )  # fmt: skip
    return {}, [cut], facts


def _writing(entry: EncoderEntry) -> Derived:
    """A word is a token at least: more words than tokens are never read to the end."""
    tokens = int(_option(entry.contract.preprocess, "max_tokens", 128))
    most = _longest_profile(entry)
    words = max(1, min(tokens, most or tokens) - SPECIAL_TOKENS)
    refused = most is not None and most < tokens and Outside.CUT not in entry.outside
    limit = expect(
        "expect_column_values_to_be_between", "cut-short",
        Severity.CRITICAL if refused else Severity.WARNING, column="words", max_value=words,
    )  # fmt: skip
    facts: dict[str, str | int | float] = {"preprocess.max_tokens": tokens}
    if most is not None:
        facts["profiles.tokens"] = most
    return {}, [limit], facts


def _longest_profile(entry: EncoderEntry) -> int | None:
    """The most tokens of any profile."""
    ids = {item.name for item in entry.contract.inputs if item.meaning is Meaning.TOKEN_IDS}
    lengths = [
        item.maximum[-1]
        for profile in entry.profiles
        for item in profile.ranges
        if item.tensor in ids
    ]
    return max(lengths, default=None)


_LIMITS: Mapping[str, Callable[[EncoderEntry], Derived]] = {
    "image": _picture,
    "log_mel": _recording,
    "wordpiece": _writing,
}


def _option(spec: PreprocessSpec, name: str, default: str | int) -> str | int:
    """An option as written, or its default in services/preprocess."""
    found = dict(spec.options).get(name, default)
    return found if isinstance(found, str | int) else default
