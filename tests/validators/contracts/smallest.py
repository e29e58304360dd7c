"""The smallest pipeline file, and what is wrong with a changed one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from validators.contracts.pipeline_file import PipelineFileError, Problem, parse_pipeline

SMALLEST: dict[str, Any] = {
    "service": "smallest",
    "data": {"folder": "data"},
    "encoders": {
        "text": {
            "version": "1.0.0",
            "modality": "text",
            "source": {"onnx": "text.onnx"},
            "inputs": [
                {"name": "ids", "dtype": "INT64", "shape": ["batch", 16], "meaning": "token_ids"}
            ],
            "outputs": [
                {
                    "name": "vector",
                    "dtype": "FP32",
                    "shape": ["batch", 8],
                    "meaning": "global_embedding",
                    "space": "own",
                }
            ],
        }
    },
    "branches": {"text": {"encoder": "text"}},
}

Step = str | int


def changed(*path: Step, to: object) -> str:
    """The smallest file with the value at `path` set, as JSON, which is YAML."""
    value = json.loads(json.dumps(SMALLEST))
    target = value
    for step in path[:-1]:
        target = target.setdefault(step, {}) if isinstance(target, dict) else target[step]
    target[path[-1]] = to
    return json.dumps(value)


def problems_of(text: str) -> tuple[Problem, ...]:
    with pytest.raises(PipelineFileError) as caught:
        parse_pipeline(text)
    return caught.value.problems
