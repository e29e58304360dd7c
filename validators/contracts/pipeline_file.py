"""The user's file: `pipeline.yaml` as text in, a `Pipeline` out, or everything that is wrong.

    text ─► yaml_lines (bounds, lines, duplicates) ─► pipeline_schema (shape, units, names)
         ─► pipeline_rules (between keys) ─► Pipeline

All problems are reported at once, in the order of their lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from validators.contracts.errors import BadInput
from validators.contracts.pipeline import Pipeline
from validators.contracts.pipeline_build import build_pipeline
from validators.contracts.pipeline_complaints import Complaint, complain, dotted
from validators.contracts.pipeline_parts import parts_of
from validators.contracts.pipeline_rules import rule_complaints
from validators.contracts.pipeline_schema import PipelineDocument, pipeline_schema
from validators.contracts.yaml_lines import YamlDocument, read_yaml

__all__ = ["PipelineFileError", "Problem", "parse_pipeline", "pipeline_schema"]


MAX_SHOWN = 50
"""Problems in the error's text; `problems` has them all."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, what, and what to write instead. Lines count from 1."""

    line: int
    path: str  # "slo.p99_ms", "backends[0].deploy"
    message: str  # full sentences
    remedy: str  # an imperative sentence

    def __str__(self) -> str:
        return f"line {self.line}: {self.message} {self.remedy}"


class PipelineFileError(BadInput):
    """The user's file is wrong; `problems` has all of it."""

    def __init__(self, path: str, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "\n".join(
            f"  {path}:{item.line}: {item.message} {item.remedy}" for item in problems[:MAX_SHOWN]
        )
        if len(problems) > MAX_SHOWN:
            lines += f"\n  and {len(problems) - MAX_SHOWN} more"
        super().__init__(
            f"{path} has {count}:\n{lines}",
            where=f"{path}:{problems[0].line}",
            remedy=problems[0].remedy,
        )

    def __str__(self) -> str:
        return self.what


def parse_pipeline(text: str, *, path: str = "pipeline.yaml") -> Pipeline:
    """The pipeline that the file's text describes. `path` is for messages only.

    Raises:
        PipelineFileError: with every problem of the text.
    """
    document = read_yaml(text)
    problems = [
        Problem(item.line, dotted(item.path), item.message, item.remedy) for item in document.faults
    ]
    if document.value is None:
        raise PipelineFileError(path, tuple(problems) or (_EMPTY,))
    pipeline, complaints = _read(document.value)
    problems += [_located(item, document) for item in complaints]
    if pipeline is None or problems:
        raise PipelineFileError(path, _in_order(problems))
    return pipeline


_EMPTY = Problem(1, "the file", "The file is empty.", "Write service, data, encoders and branches.")


def _read(value: object) -> tuple[Pipeline | None, list[Complaint]]:
    try:
        model = PipelineDocument.model_validate(value)
    except ValidationError as error:
        complaints = complain(error)
        if isinstance(value, dict):
            complaints += rule_complaints(parts_of(value))
        return None, complaints
    complaints = rule_complaints(parts_of(value)) if isinstance(value, dict) else []
    return (None if complaints else build_pipeline(model)), complaints


def _located(complaint: Complaint, document: YamlDocument) -> Problem:
    line = document.line_of(complaint.path)
    return Problem(line, dotted(complaint.path), complaint.message, complaint.remedy)


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(dict.fromkeys(problems), key=lambda item: (item.line, _natural(item.path))))


def _natural(path: str) -> tuple[tuple[int, str], ...]:
    return tuple(
        (int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path)
    )
