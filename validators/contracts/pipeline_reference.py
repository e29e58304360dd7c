"""The reference page of the user's file, written from its schema.

`python -m validators.contracts.pipeline_reference` prints `docs/pipeline-file.md`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from validators.contracts.pipeline_complaints import FORMS
from validators.contracts.pipeline_schema import pipeline_schema

_INTRODUCTION = """# The pipeline file

One `pipeline.yaml` describes a service: its encoders, how they are fused, its objectives, gates,
deployment and schedules. `modalgate schema` prints its JSON Schema for editors. This page is made
from the same schema: `python -m validators.contracts.pipeline_reference > docs/pipeline-file.md`.

- It is YAML read by the rules of YAML 1.2: `yes` is a text, `1:30` is a text, `1e3` is a number.
- `service`, `data`, `encoders` and `branches` are required; everything else has a default.
- A number carries no unit: the key's name does (`p99_ms`, `hold_s`), and shares go from 0 to 1.
- Unknown keys, duplicate keys, tags and merge keys are refused; anchors and aliases are read,
  within bounds: 1 MB, 20 levels, 20,000 values.
- All that is wrong is reported at once, each with its line and with what to write instead.
- Files are named relative to the pipeline file; an asset may also be `package:relative/path`, a
  file inside an installed package.
- What the folder of `data` holds is told in [the data folder](data-folder.md).
"""


def pipeline_reference() -> str:
    """The page, as Markdown."""
    schema = pipeline_schema()
    sections = [_INTRODUCTION, *_section("the file", schema)]
    for path, name in _order(schema):
        sections += _section(path, schema["$defs"][name])
    return "\n".join(sections)


def _order(schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Sections as the file nests them, each once, with the path it is first found under."""
    found: dict[str, str] = {}
    waiting: list[tuple[str, Mapping[str, Any]]] = [("", schema)]
    while waiting:
        path, node = waiting.pop(0)
        for key, item in node.get("properties", {}).items():
            for suffix, name in _references(item):
                if name not in found:
                    found[name] = f"{path}.{key}{suffix}".lstrip(".")
                    waiting.append((found[name], schema["$defs"][name]))
    return sorted(((path, name) for name, path in found.items()), key=lambda pair: pair[0])


def _references(node: Mapping[str, Any], suffix: str = "") -> Iterator[tuple[str, str]]:
    if "$ref" in node:
        yield suffix, node["$ref"].rsplit("/", 1)[1]
    for option in _ways(node):
        yield from _references(option, suffix)
    if isinstance(node.get("items"), dict):
        yield from _references(node["items"], f"{suffix}[]")
    for child in (*node.get("patternProperties", {}).values(), node.get("additionalProperties")):
        if isinstance(child, dict):
            yield from _references(child, f"{suffix}.<name>")


def _ways(node: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*node.get("anyOf", []), *node.get("oneOf", [])]


def _section(path: str, node: Mapping[str, Any]) -> Iterator[str]:
    yield f"## `{path}`\n" if path != "the file" else "## The file\n"
    yield f"{node['description']}\n"
    yield "| key | value | default | meaning |"
    yield "|---|---|---|---|"
    required = node.get("required", [])
    for key, item in node["properties"].items():
        default = "**required**" if key in required else _default(item)
        meaning = _meaning(item).replace("|", "\\|")
        yield f"| `{key}` | {_value(item)} | {default} | {meaning} |"
    yield ""


def _meaning(node: Mapping[str, Any]) -> str:
    """The key's own words, or those of the section that it opens."""
    if "description" not in node:
        node = pipeline_schema()["$defs"][node["$ref"].rsplit("/", 1)[1]]
    return str(node["description"])


def _default(node: Mapping[str, Any]) -> str:
    if node.get("default") is None:
        return "see below" if "$ref" in node else "-"
    return f"`{json.dumps(node['default'])}`"


def _value(node: Mapping[str, Any]) -> str:
    if "$ref" in node:
        return "mapping"
    if ways := _ways(node):
        unit = {name: node[name] for name in ("x-unit",) if name in node}
        options = [_value(item | unit) for item in ways if item.get("type") != "null"]
        return " or ".join(dict.fromkeys(options))
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join(f"`{item}`" for item in node["enum"])
    kind = node.get("type")
    if kind == "array":
        return f"list of: {_value(node['items'])}"
    if kind == "object":
        return f"mapping of name to: {_value(_entry(node))}"
    if isinstance(kind, list):
        return "text, number, true or false"
    return _scalar(
        node, {"integer": "whole number", "boolean": "true or false"}.get(kind or "", "")
    )


def _entry(node: Mapping[str, Any]) -> Mapping[str, Any]:
    patterns = [*node.get("patternProperties", {}).values()]
    entry: Mapping[str, Any] = patterns[0] if patterns else node["additionalProperties"]
    return entry


def _scalar(node: Mapping[str, Any], word: str) -> str:
    word = word or {"number": "number", "string": "text"}.get(node.get("type", ""), "value")
    if "pattern" in node:
        return FORMS.get(node["pattern"], word).split(": ")[0]
    unit = node.get("x-unit")
    words = {"share": "share, 0 to 1", "percent": "percent"}
    text = words.get(unit, f"{word}, {unit}") if unit else word
    bounds = [
        f"{sign} {node[name]:g}"
        for name, sign in _BOUNDS.items()
        if name in node and node[name] < 2**31 - 1 and unit != "share"
    ]
    return ", ".join([text, *bounds])


_BOUNDS = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}


if __name__ == "__main__":
    sys.stdout.write(pipeline_reference())
