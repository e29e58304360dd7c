"""Places of the user's file in its schema: what may stand at a path of keys and indices."""

from __future__ import annotations

from functools import cache
from typing import Any

from validators.contracts.pipeline_keys import READINGS
from validators.contracts.pipeline_schema import pipeline_schema
from validators.contracts.yaml_lines import Path


def schema_at(path: Path) -> dict[str, Any]:
    """The schema of the value at a path of the file; empty where the file has no such place."""
    node = _node(path)
    return node | _readings(node)[0]


def place_of(loc: tuple[int | str, ...]) -> tuple[Path, bool]:
    """Where in the file pydantic found an error, and whether a key itself is meant."""
    if loc and loc[-1] == "[key]":
        return _without_tags(loc[:-1]), True
    return _without_tags(loc), False


def known_keys(path: Path) -> list[str]:
    """The keys that the mapping at a path may have; empty where any name may stand."""
    return [
        name
        for node in _readings(_node(path))
        for name in [*node.get("properties", {}), *node.get("propertyNames", {}).get("enum", [])]
    ]


def choices(path: Path) -> list[str]:
    """The words that may stand at a path."""
    return [
        str(item)
        for node in _readings(_node(path))
        for item in [*node.get("enum", []), *([node["const"]] if "const" in node else [])]
    ]


@cache
def _schema() -> dict[str, Any]:
    return pipeline_schema()


def _node(path: Path) -> dict[str, Any]:
    node = _schema()
    for step in path:
        steps = (_step(option, step) for option in _readings(node))
        node = next((found for found in steps if found), {})
    return node


def _readings(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The ways to write a value, null apart: one, or those of a union in its order."""
    if "$ref" in node:
        return _readings(_schema()["$defs"][node["$ref"].rsplit("/", 1)[1]])
    options = [
        found
        for option in [*node.get("anyOf", []), *node.get("oneOf", [])]
        if option.get("type") != "null"
        for found in _readings(option)
    ]
    return options or [node]


def _step(node: dict[str, Any], step: str | int) -> dict[str, Any]:
    if isinstance(step, int):
        found = node.get("items", {})
    else:
        found = node.get("properties", {}).get(step)
        if found is None:
            found = next(iter(node.get("patternProperties", {}).values()), None)
        if found is None:
            found = node.get("additionalProperties")
    return found if isinstance(found, dict) else {}


def _without_tags(loc: Path) -> Path:
    """The place in the file: pydantic puts the tag of a union before what is inside it."""
    path: Path = ()
    tagged = False
    for step in loc:
        tagged = not tagged and step in READINGS and len(_readings(_node(path))) > 1
        if not tagged:
            path = (*path, step)
    return path
