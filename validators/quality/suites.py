"""Great Expectations, in memory: one suite per modality over a frame of measures.

Nothing is written and nothing is sent: the context is ephemeral and its analytics are off.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from validators.contracts.dataset import Dataset, Sample
from validators.quality.settings import QualitySettings, Suite

SAMPLE = "sample"


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation, in Great Expectations' own words, and the rule name of its findings."""

    code: str
    name: str  # the expectation's class name
    arguments: tuple[tuple[str, Any], ...]

    def argument(self, name: str) -> Any:
        return dict(self.arguments).get(name)


@dataclass(frozen=True, slots=True)
class Unmet:
    """An expectation that did not hold: for which samples, what was seen, what was wanted."""

    modality: str
    code: str
    column: str
    samples: tuple[str, ...]
    observed: tuple[str, ...]  # as many as `samples`
    wanted: str


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """What one suite found. `errors` name expectations that could not be evaluated."""

    modality: str
    rows: int
    expectations: int
    unmet: tuple[Unmet, ...]
    errors: tuple[str, ...] = ()


def presence_frame(dataset: Dataset, modalities: tuple[str, ...]) -> pd.DataFrame:
    """One row a sample, a column per modality holding its media type, or None where missing."""
    rows = [
        (sample.id, *(_media_type(sample, modality) for modality in modalities))
        for sample in dataset.samples
    ]
    return pd.DataFrame(rows, columns=[SAMPLE, *modalities], dtype=object)


def measure_frame(dataset: Dataset, modality: str, suite: Suite) -> pd.DataFrame:
    """One row for each sample that has the modality: its id, media type and measures.

    A measure that the suite names and the sample lacks is null.
    """
    columns = [SAMPLE, "media_type", *(item.measure for item in suite.ranges)]
    rows = [
        {SAMPLE: sample.id, "media_type": media.media_type} | dict(media.measures)
        for sample in dataset.samples
        for media in sample.media
        if media.modality == modality
    ]
    return pd.DataFrame(rows, columns=columns)


def presence_expectations(
    settings: QualitySettings, modalities: tuple[str, ...]
) -> list[Expectation]:
    mostly = 1.0 - settings.missing_rate
    unique = Expectation("duplicate-id", "ExpectColumnValuesToBeUnique", (("column", SAMPLE),))
    return [unique] + [
        Expectation(
            "missing-modality",
            "ExpectColumnValuesToNotBeNull",
            (("column", modality), ("mostly", mostly)),
        )
        for modality in modalities
    ]


def suite_expectations(suite: Suite) -> list[Expectation]:
    types = Expectation(
        "media-type",
        "ExpectColumnValuesToBeInSet",
        (("column", "media_type"), ("value_set", list(suite.media_types))),
    )
    return [types, *_measures(suite)]


def run_suite(modality: str, frame: pd.DataFrame, expectations: list[Expectation]) -> SuiteRun:
    """Evaluate the expectations on the frame; failing rows come back by sample id."""
    unmet, errors = [], []
    results = _validate(frame, expectations).results
    for result in sorted(results, key=lambda item: item.expectation_config.meta["index"]):
        expectation = expectations[result.expectation_config.meta["index"]]
        if not result.success and "unexpected_index_list" not in result.result:
            errors.append(f"{expectation.code}/{expectation.argument('column')}")
        elif not result.success:
            unmet.append(_unmet(modality, expectation, result.result["unexpected_index_list"]))
    return SuiteRun(modality, len(frame), len(expectations), tuple(unmet), tuple(errors))


def _measures(suite: Suite) -> Iterator[Expectation]:
    for item in suite.ranges:
        column = ("column", item.measure)
        yield Expectation("missing-measure", "ExpectColumnValuesToNotBeNull", (column,))
        yield Expectation(
            "out-of-range",
            "ExpectColumnValuesToBeBetween",
            (column, ("min_value", item.minimum), ("max_value", item.maximum)),
        )


def _media_type(sample: Sample, modality: str) -> str | None:
    media = sample.find(modality)
    return media.media_type if media else None


def _unmet(modality: str, expectation: Expectation, rows: list[dict[str, Any]]) -> Unmet:
    column = expectation.argument("column")
    return Unmet(
        modality,
        expectation.code,
        column,
        samples=tuple(str(row[SAMPLE]) for row in rows),
        observed=tuple(_observed(row.get(column)) for row in rows),
        wanted=_wanted(expectation),
    )


def _observed(value: Any) -> str:
    return (
        "missing" if pd.isna(value) else f"{value:.6g}" if isinstance(value, float) else str(value)
    )


def _wanted(expectation: Expectation) -> str:
    arguments = dict(expectation.arguments)
    if "min_value" in arguments:
        return f"{arguments['min_value']:g} to {arguments['max_value']:g}"
    if "value_set" in arguments:
        return " or ".join(arguments["value_set"])
    if "mostly" in arguments:
        return f"in at least {arguments['mostly']:.2%} of the samples"
    return "unique" if expectation.code == "duplicate-id" else "present"


def _validate(frame: pd.DataFrame, expectations: list[Expectation]) -> Any:
    # Imported here, against the house rule: it costs five seconds, which no command but the one
    # that judges quality should pay. Analytics have to be off before it is.
    os.environ.setdefault("DO_NOT_TRACK", "1")
    import great_expectations as gx  # noqa: PLC0415
    from great_expectations.data_context.types.base import ProgressBarsConfig  # noqa: PLC0415

    context = gx.get_context(mode="ephemeral")
    context.enable_analytics(False)
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("memory").add_dataframe_asset("measures")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
    suite = gx.ExpectationSuite(
        name="suite",
        expectations=[
            getattr(gx.expectations, item.name)(**dict(item.arguments), meta={"index": index})
            for index, item in enumerate(expectations)
        ],
    )
    return batch.validate(
        suite,
        result_format={
            "result_format": "COMPLETE",
            "unexpected_index_column_names": [SAMPLE],
        },
    )
