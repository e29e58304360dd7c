"""What a key of the user's file may hold: forms of names, sizes, units, and the closed mapping.

A key that may be written in several ways is a tagged union, so that a mistake is told about the way
that was meant; the tags are `READINGS`, and no part of the file.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

NAME = r"^[a-z][a-z0-9_-]{0,62}$"
TENSOR = r"^[A-Za-z_][A-Za-z0-9_.:/-]{0,127}$"
SERVICE = r"^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"
VERSION = r"^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$"
TARGET = r"^(host|SM[0-9]{2,3})$"
FINDING = r"^[^/\s]+/[^/\s]+/\S.*$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
FACTORY = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
RECEIVER = (
    r"^(https://[A-Za-z0-9.-]+|http://(127\.0\.0\.1|localhost|\[::1\]))(:[0-9]{1,5})?(/[!-~]*)?$"
)
MAX_DIM = 2**31 - 1
ONE, LISTED, MAPPED = "as one", "as a list", "as a mapping"
READINGS = (ONE, LISTED, MAPPED)


def _dim(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_DIM:
        return value
    if isinstance(value, str) and value.isascii() and value.isidentifier():
        return value
    raise PydanticCustomError("dimension", "not a dimension")


def _scalar(value: object) -> object:
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise PydanticCustomError("scalar", "not a scalar")


Dim = Annotated[
    int | str,
    BeforeValidator(_dim),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_]*$"},
            ]
        }
    ),
]
Scalar = Annotated[
    str | int | float | bool,
    BeforeValidator(_scalar),
    WithJsonSchema({"type": ["string", "number", "integer", "boolean"]}),
]
Name = Annotated[str, Field(pattern=NAME)]
TensorName = Annotated[str, Field(pattern=TENSOR)]
Text = Annotated[str, Field(min_length=1, max_length=1024)]
Size = Annotated[int, Field(ge=1, le=MAX_DIM)]
Percent = Annotated[int, Field(ge=1, le=100, json_schema_extra={"x-unit": "percent"})]
Modal = Literal["fp32", "fp16", "bf16", "int8", "int4"]


def key(description: str, default: Any = ..., *, unit: str | None = None, **limits: Any) -> Any:
    """A key of the file. `unit` is published as `x-unit`; "share" means 0 to 1."""
    if unit == "share":
        limits = {"ge": 0, "le": 1} | limits
    extra: JsonDict | None = {"x-unit": unit} if unit else None
    return Field(default, description=description, json_schema_extra=extra, **limits)


def section(description: str, kind: type[BaseModel]) -> Any:
    return Field(default_factory=kind, description=description)


class Section(BaseModel):
    """A closed mapping: unknown keys are refused and nothing is converted."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, use_enum_values=True
    )
