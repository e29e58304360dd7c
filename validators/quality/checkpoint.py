"""Great Expectations, in memory: a checkpoint for each suite over a table.

Nothing is written and nothing is sent: the context is ephemeral, its analytics are off, and the
run's time is a constant, so that the same data gives the same answer to the byte.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pandas as pd

from validators.quality.expectations import class_name
from validators.quality.words import SAMPLE, Expectation, Suite

RUN_NAME = "quality"
RUN_TIME = datetime(1970, 1, 1, tzinfo=UTC)
KEPT_VALUES = 20
"""Bad values of one expectation that a result lists; the ids are all kept apart."""

_COMPLETE = {"result_format": "COMPLETE", "return_unexpected_index_query": False}
_LISTS = ("unexpected_list", "unexpected_index_list", "unexpected_counts")


@dataclass(frozen=True, slots=True)
class Checked:
    """How one expectation came out.

    `rows` are the places of the bad rows in the table, None where it is about the whole column;
    `judged` how many rows had something to judge. `error` says why there is no answer.
    """

    expectation: Expectation
    met: bool
    rows: tuple[int, ...] | None
    judged: int
    observed: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One suite over one table: what came out, and Great Expectations' own result as JSON."""

    suite: Suite
    frame: pd.DataFrame
    checked: tuple[Checked, ...]
    document: dict[str, Any]

    def ids(self, rows: tuple[int, ...]) -> tuple[str, ...]:
        """The samples in these rows."""
        column = self.frame[SAMPLE].to_numpy()
        return tuple(str(column[row]) for row in rows)


def run_suite(suite: Suite, frame: pd.DataFrame) -> SuiteRun:
    """Evaluate a suite on a table with at least one row."""
    result = _validate(suite, frame)
    found = {_index(item): item for item in result.results}
    checked, entries = [], []
    for index, expectation in enumerate(suite.expectations):
        answer = _checked(expectation, frame, found[index])
        entry = found[index].to_json_dict() | {"success": answer.met}
        _shorten(entry["result"], frame)
        entry["expectation_config"].pop("id", None)
        entry["expectation_config"]["kwargs"].pop("batch_id", None)
        entry["exception_info"] = _told(answer)
        checked.append(answer)
        entries.append(entry)
    return SuiteRun(suite, frame, tuple(checked), _document(suite, entries))


def _document(suite: Suite, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Great Expectations' result without what differs from run to run: ids, times, addresses."""
    met = sum(bool(entry["success"]) for entry in entries)
    return {
        "success": met == len(entries),
        "suite_name": suite.name,
        "suite_parameters": {},
        "results": entries,
        "statistics": {
            "evaluated_expectations": len(entries),
            "successful_expectations": met,
            "unsuccessful_expectations": len(entries) - met,
            "success_percent": 100 * met / len(entries) if entries else None,
        },
        "meta": {
            "great_expectations_version": version("great_expectations"),
            "run_id": {"run_name": RUN_NAME, "run_time": RUN_TIME.isoformat()},
            "checkpoint_name": suite.name,
        },
    }


def _index(item: Any) -> int:
    return int(item.expectation_config.meta["index"])


def _told(answer: Checked) -> dict[str, Any]:
    """What went wrong without a traceback, which names places of this machine."""
    return {
        "raised_exception": bool(answer.error),
        "exception_message": answer.error,
        "exception_traceback": "",
    }


def _checked(expectation: Expectation, frame: pd.DataFrame, item: Any) -> Checked:
    absent = [name for name in expectation.columns if name not in frame.columns]
    if absent and expectation.type != "expect_column_to_exist":
        return Checked(expectation, False, None, 0, "", f"there is no column {absent[0]}")
    result: Mapping[str, Any] = item.result or {}
    rows = result.get("unexpected_index_list")
    if not result and _raised(item.exception_info):
        return Checked(expectation, False, None, 0, "", "it could not be evaluated")
    total = int(result.get("element_count", len(frame)))
    judged = total - int(result.get("missing_count", 0) or 0)
    if rows is None and "unexpected_count" in result:
        rows = []
    if rows is not None and not rows and total and not judged:
        return Checked(expectation, False, None, 0, "", "no row has a value to judge")
    observed = _shown(result.get("observed_value"))
    return Checked(
        expectation,
        bool(item.success),
        None if rows is None else tuple(int(row) for row in rows),
        judged,
        observed,
    )


def _raised(info: Mapping[str, Any] | None) -> bool:
    if not info:
        return False
    if "raised_exception" in info:
        return bool(info["raised_exception"])
    return any(isinstance(item, Mapping) and item.get("raised_exception") for item in info.values())


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}" if math.isfinite(value) else "not a number"
    if isinstance(value, list):
        return ", ".join(str(item)[:64] for item in value[:KEPT_VALUES])
    return str(value)[:256] if value is not None else ""


def _shorten(result: dict[str, Any], frame: pd.DataFrame) -> None:
    """Keep the first bad rows, by id: the rest would make the result as large as the data."""
    rows = result.get("unexpected_index_list")
    values = result.get("partial_unexpected_list") or []
    for name in _LISTS:
        result.pop(name, None)
    if "observed_value" in result:
        result["observed_value"] = _plain(result["observed_value"])
    if rows:
        column = frame[SAMPLE].to_numpy()
        kept = [
            {SAMPLE: str(column[row]), "value": _plain(value)}
            for row, value in zip(rows[:KEPT_VALUES], values[:KEPT_VALUES], strict=False)
        ]
        result["unexpected_index_column_names"] = [SAMPLE]
        result["partial_unexpected_index_list"] = kept


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | bool) else _shown(value)


def _validate(suite: Suite, frame: pd.DataFrame) -> Any:
    # Imported here, against the house rule: it costs five seconds, which no command but the one
    # that judges quality should pay. Analytics have to be off before it is.
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx  # noqa: PLC0415
    from great_expectations.core.run_identifier import RunIdentifier  # noqa: PLC0415
    from great_expectations.data_context.types.base import (  # noqa: PLC0415
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
        progress_bars=ProgressBarsConfig(globally=False),
        analytics_enabled=False,
    )
    context = gx.get_context(mode="ephemeral", project_config=config)
    asset = context.data_sources.add_pandas("memory").add_dataframe_asset(suite.name)
    made = gx.ExpectationSuite(
        name=suite.name,
        expectations=[
            getattr(gx.expectations, class_name(item.type))(
                **{name: _thawed(value) for name, value in item.arguments},
                severity=item.severity.value,
                meta={"index": index},
            )
            for index, item in enumerate(suite.expectations)
        ],
    )
    definition = gx.ValidationDefinition(
        name=suite.name,
        data=asset.add_batch_definition_whole_dataframe("all"),
        suite=context.suites.add(made),
    )
    checkpoint = gx.Checkpoint(
        name=suite.name,
        validation_definitions=[context.validation_definitions.add(definition)],
        result_format=_COMPLETE,
    )
    ran = context.checkpoints.add(checkpoint).run(
        batch_parameters={"dataframe": frame}, run_id=RunIdentifier(RUN_NAME, RUN_TIME)
    )
    (result,) = ran.run_results.values()
    return result


def _thawed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
