"""Suites as files, in Great Expectations' own suite JSON: people edit them, its tools read them.

What stands in a file is a stranger's word. Types and arguments are those of `expectations.FORMS`,
counts and sizes are bounded, and nothing of a file but those reaches Great Expectations. Notes,
descriptions and ids that its tools write are read past.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from validators.contracts.digest import canonical_json
from validators.contracts.errors import BadInput
from validators.contracts.strict_json import AmbiguousJson, parse_strictly
from validators.quality.expectations import FORMS, argument_faults, frozen
from validators.quality.words import Expectation, Facts, Severity, Suite

MAX_FILE_BYTES = 256 * 1024
MAX_EXPECTATIONS = 200
MAX_FACTS = 64
MAX_SHOWN = 20
OURS = "modalgate"  # our key in a suite's and an expectation's meta

_RULE = re.compile(r"[a-z][a-z0-9-]{0,63}")
_SUITE_KEYS = frozenset({"name", "id", "expectations", "suite_parameters", "meta", "notes"})
_ENTRY_KEYS = frozenset(
    {"type", "kwargs", "meta", "severity", "id", "notes", "description", "rendered_content"}
)


@dataclass(frozen=True, slots=True)
class SuiteProblem:
    """One thing that is wrong with a file. `place` is like expectations[3].kwargs.min_value."""

    file: str
    place: str
    message: str  # full sentences

    def __str__(self) -> str:
        return f"{self.file}: {self.place}: {self.message}"


class SuiteFileError(BadInput):
    """Suite files are wrong; `problems` has all of it."""

    def __init__(self, problems: Iterable[SuiteProblem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        lines = [f"  {item}" for item in self.problems[:MAX_SHOWN]]
        if count > MAX_SHOWN:
            lines.append(f"  and {count - MAX_SHOWN} more")
        head = "a problem" if count == 1 else f"{count} problems"
        super().__init__(
            "\n".join([f"the quality suites have {head}:", *lines]),
            where=f"{self.problems[0].file}, {self.problems[0].place}",
            remedy="Mend the file, or write it anew: modalgate quality init FILE --force",
        )


def write_suite(suite: Suite) -> bytes:
    """The suite as Great Expectations' JSON, laid out for people."""
    document = {
        "name": suite.name,
        "expectations": [_entry(item) for item in suite.expectations],
        "meta": {
            "great_expectations_version": version("great_expectations"),
            OURS: {"contract": dict(suite.facts), "origin": suite.origin},
        },
    }
    plain = json.loads(canonical_json(document))
    return json.dumps(plain, indent=2, ensure_ascii=False, sort_keys=True).encode() + b"\n"


def read_suite(data: bytes, *, file: str, name: str) -> Suite:
    """The suite called `name` that a file's bytes hold; `file` is for messages.

    Raises:
        SuiteFileError: with everything that is wrong.
    """
    document = _parse(data, file)
    problems = list(_document_problems(document, name))
    entries = document.get("expectations")
    if not isinstance(entries, list):
        problems.append(("expectations", "It is no list. Write the suite's expectations there."))
    elif len(entries) > MAX_EXPECTATIONS:
        problems.append(
            ("expectations", f"There are {len(entries)}; at most {MAX_EXPECTATIONS} are read.")
        )
    else:
        for index, entry in enumerate(entries):
            problems += [(f"expectations[{index}]{place}", what) for place, what in _faults(entry)]
    if problems:
        raise SuiteFileError(SuiteProblem(file, place, what) for place, what in problems)
    return Suite(name, tuple(_expectation(entry) for entry in entries or ()), _facts(document))


def _entry(item: Expectation) -> dict[str, Any]:
    return {
        "type": item.type,
        "kwargs": dict(item.arguments),
        "severity": item.severity,
        "meta": {OURS: item.rule},
    }


def _parse(data: bytes, file: str) -> dict[str, Any]:
    if len(data) > MAX_FILE_BYTES:
        what = f"The file has {len(data)} bytes; at most {MAX_FILE_BYTES} are read."
        raise SuiteFileError([SuiteProblem(file, "the file", what)])
    try:
        document = parse_strictly(data)
    except (ValueError, RecursionError) as error:
        place = f"line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "the file"
        what = f"It is not JSON with distinct keys and finite numbers: {_reason(error)}."
        raise SuiteFileError([SuiteProblem(file, place, what)]) from error
    if not isinstance(document, dict):
        raise SuiteFileError([SuiteProblem(file, "the file", "It is no JSON object.")])
    return document


def _reason(error: Exception) -> str:
    """Why, without quoting what stands in the file."""
    if isinstance(error, json.JSONDecodeError):
        return error.msg.rstrip(".")
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error) if isinstance(error, AmbiguousJson) else "it cannot be read"


def _document_problems(document: dict[str, Any], name: str) -> Iterator[tuple[str, str]]:
    for key in sorted(document.keys() - _SUITE_KEYS):
        yield key[:80], "A suite has no such key. Remove it."
    if document.get("name") != name:
        shown = repr(document["name"][:80]) if isinstance(document.get("name"), str) else "no text"
        yield (
            "name",
            f"The suite is called {shown}, and this file is for {name!r}. Write {name!r}, or "
            "move the file.",
        )
    if document.get("suite_parameters"):
        yield "suite_parameters", "Parameters are not read. Write the values themselves."
    meta = document.get("meta", {})
    ours = meta.get(OURS, {}) if isinstance(meta, dict) else None
    if not isinstance(ours, dict) or not isinstance(ours.get("contract", {}), dict):
        yield f"meta.{OURS}", "It is no JSON object. Leave it as modalgate quality init wrote it."
        return
    facts = ours.get("contract", {})
    if len(facts) > MAX_FACTS or not all(
        isinstance(value, str | int | float) and len(str(value)) <= 1024 and len(key) <= 128
        for key, value in facts.items()
    ):
        yield (
            f"meta.{OURS}.contract",
            "It is not what modalgate quality init wrote. Write the file anew.",
        )


def _faults(entry: object) -> Iterator[tuple[str, str]]:
    """(place within the entry, what is wrong) of one expectation."""
    if not isinstance(entry, dict):
        yield "", "It is no JSON object."
        return
    for key in sorted(entry.keys() - _ENTRY_KEYS):
        yield f".{key[:80]}", "An expectation has no such key. Remove it."
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in FORMS:
        yield ".type", _unknown_type(kind)
        return
    arguments = entry.get("kwargs")
    if not isinstance(arguments, dict):
        yield ".kwargs", "It is no JSON object. Write the expectation's arguments there."
        return
    for name, fault in argument_faults(kind, arguments):
        yield f".kwargs.{name[:80]}", f"The argument {name[:80]} {fault}."
    if entry.get("severity", "critical") not in {item.value for item in Severity}:
        yield ".severity", "It is none of critical, warning and info."
    meta = entry.get("meta") or {}
    rule = meta.get(OURS, "expectation") if isinstance(meta, dict) else None
    if not isinstance(rule, str) or not _RULE.fullmatch(rule):
        yield f".meta.{OURS}", "A rule's name is small letters, digits and -, 64 at most."


def _unknown_type(kind: object) -> str:
    if not isinstance(kind, str):
        return "It is no text. Name an expectation, such as expect_column_values_to_be_between."
    close = difflib.get_close_matches(kind[:128], FORMS, n=1, cutoff=0.8)
    advice = f"Did you mean {close[0]}?" if close else "docs/quality.md lists those that may."
    return f"The expectation {kind[:80]!r} may not be used in a suite file. {advice}"


def _expectation(entry: dict[str, Any]) -> Expectation:
    meta = entry.get("meta") or {}
    return Expectation(
        entry["type"],
        tuple(sorted((name, frozen(value)) for name, value in entry["kwargs"].items())),
        meta.get(OURS) or _rule_of(entry["type"]),
        Severity(entry.get("severity", "critical")),
    )


def _rule_of(kind: str) -> str:
    """A name for findings of an expectation that has none: `be-between`."""
    bare = re.sub(r"^expect_(column_values_to|column_value|column|table)_", "", kind)
    return bare.replace("_", "-")


def _facts(document: dict[str, Any]) -> Facts:
    ours = document.get("meta", {}).get(OURS, {})
    return tuple(sorted(ours.get("contract", {}).items()))
