"""What is wrong with the shape of a user's file, said in full sentences.

Takes pydantic's errors apart and says each with the key, what stands there and what to write.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from validators.contracts import pipeline_keys as form
from validators.contracts.pipeline_places import choices, known_keys, place_of, schema_at
from validators.contracts.yaml_lines import Path

FORMS: Mapping[str, str] = {
    form.NAME: "a lower-case name: a letter, then at most 62 letters, digits, - or _",
    form.SERVICE: "a DNS label: a lower-case letter, then letters, digits or -, 63 at most",
    form.TENSOR: "a name as in the model's graph",
    form.FACTORY: "package.module:function",
    form.VERSION: "a version such as 1.0.0",
    form.TARGET: "host, or a GPU generation such as SM89",
    form.FINDING: "gate/code/subject, as a verdict prints it",
    form.DAY: "a day such as 2030-01-31",
    form.RECEIVER: "an https address, or http of this machine: no user, no password",
}
"""How each pattern of the schema is said."""

_UNITS: Mapping[str, Mapping[str, float]] = {
    "ms": {"ns": 1e-6, "us": 1e-3, "ms": 1, "msec": 1, "s": 1e3, "sec": 1e3, "min": 6e4},
    "s": {"ms": 1e-3, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600},
    "MB": {"kb": 1e-3, "mb": 1, "gb": 1000, "mib": 1, "gib": 1024, "g": 1024, "gi": 1024},
    "Hz": {"hz": 1, "khz": 1e3, "fps": 1},
    "share": {"%": 0.01, "percent": 0.01},
    "percent": {"%": 1, "percent": 1},
}
_UNIT_WORDS = {
    "ms": "milliseconds", "s": "seconds", "MB": "megabytes", "Hz": "hertz",
    "share": "a share from 0 to 1", "percent": "percent",
}  # fmt: skip
_QUANTITY = re.compile(r"\s*([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]{1,3})?)\s*([A-Za-z%µ]*)\s*")


@dataclass(frozen=True, slots=True)
class Complaint:
    """One problem at a place of the file, before its line is known."""

    path: Path
    message: str
    remedy: str


def dotted(path: Path) -> str:
    """`("backends", 0, "deploy")` as people write it: `backends[0].deploy`."""
    text = ""
    for step in path:
        name = f"[{step}]" if isinstance(step, int) else f".{step[:80]}"
        text += name if text else name.removeprefix(".")
    return text or "the file"


def show(value: object) -> str:
    """A value of the file for a message, short."""
    if value is None:
        return "empty"
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    if isinstance(value, bool):
        return f"{value}".lower()
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence):
        return "a list"
    return f"{value}"[:60]


def suggest(word: str, known: Sequence[str]) -> str:
    """What to write instead of an unknown word."""
    stem = _without_unit(word)
    close = [name for name in known if stem and _without_unit(name) == stem]
    close += difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Use one of: {', '.join(sorted(known))}." if known else "Remove it."


def complain(error: ValidationError) -> list[Complaint]:
    """Every error of the shape, each once."""
    found: dict[tuple[Path, str], Complaint] = {}
    for detail in error.errors(include_url=False):
        path, of_key = place_of(detail["loc"])
        teller = _BAD_KEY if of_key else _TELLERS.get(detail["type"], _tell_other)
        complaint = teller(path, detail)
        found.setdefault((path, complaint.message), complaint)
    return list(found.values())


def _without_unit(name: str) -> str:
    return re.sub(r"_(ns|us|ms|s|sec|seconds|mb|gb|hz|percent)$", "", name)


def _bad_key(path: Path, detail: ErrorDetails) -> Complaint:
    key = str(path[-1])
    known = known_keys(path[:-1])
    if known:
        return _tell_extra(path, detail)
    form = FORMS.get(str(detail.get("ctx", {}).get("pattern")), "a short name")
    return Complaint(path, f"The name {key[:80]!r} cannot be used.", f"Write {form}.")


def _tell_missing(path: Path, _: ErrorDetails) -> Complaint:
    owner = f"{dotted(path[:-1])} has no" if len(path) > 1 else "There is no"
    purpose = schema_at(path).get("description", "")
    return Complaint(path, f"{owner} {path[-1]!r}.", f"Add {path[-1]}. {purpose}".strip())


def _tell_extra(path: Path, _: ErrorDetails) -> Complaint:
    key, known = str(path[-1]), known_keys(path[:-1])
    place = f"in {dotted(path[:-1])}" if len(path) > 1 else "at the top of the file"
    return Complaint(path, f"There is no key {key[:80]!r} {place}.", suggest(key, known))


def _tell_number(path: Path, detail: ErrorDetails) -> Complaint:
    unit = schema_at(path).get("x-unit")
    if detail["type"] == "finite_number":
        return Complaint(path, f"{dotted(path)} is not finite.", "Write a finite number.")
    wanted = "a whole number" if detail["type"].startswith("int") else "a number"
    if unit:
        wanted += f" of {_UNIT_WORDS[unit]}" if unit != "share" else ", a share from 0 to 1"
    message = f"{dotted(path)} is {show(detail['input'])}, not {wanted}."
    converted = _convert(detail["input"], unit)
    if converted is None:
        return Complaint(path, message, f"Write {wanted}, without quotes or a unit.")
    return Complaint(path, message, f"Write {_last_name(path)}: {converted}.")


def _convert(value: object, unit: str | None) -> str | None:
    """The number that "300ms" or "1 %" stands for in the key's own unit."""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    factors = _UNITS.get(unit or "", {})
    suffix = match[2].lower().replace("µ", "u")
    factor = factors.get(suffix, 1 if not suffix else None)
    return None if factor is None else f"{float(match[1]) * factor:.12g}"


def _tell_bound(path: Path, detail: ErrorDetails) -> Complaint:
    word, limit = next(
        (_BOUND_WORDS[name], value)
        for name, value in detail.get("ctx", {}).items()
        if name in _BOUND_WORDS
    )
    value = detail["input"]
    message = f"{dotted(path)} is {show(value)}; it has to be {word} {limit:g}."
    if schema_at(path).get("x-unit") == "share" and isinstance(value, int | float) and value > 1:
        return Complaint(
            path,
            message,
            f"Write a share: {value:g} percent is {_last_name(path)}: {value / 100:g}.",
        )
    return Complaint(path, message, f"Write a number that is {word} {limit:g}.")


def _tell_choice(path: Path, detail: ErrorDetails) -> Complaint:
    known = choices(path)
    value = detail["input"]
    return Complaint(
        path,
        f"{dotted(path)} is {show(value)}, which is not one of its choices.",
        suggest(value, known) if isinstance(value, str) else f"Use one of: {', '.join(known)}.",
    )


def _tell_pattern(path: Path, detail: ErrorDetails) -> Complaint:
    form = FORMS.get(str(detail.get("ctx", {}).get("pattern")), "another text")
    return Complaint(
        path, f"{dotted(path)} is {show(detail['input'])}, which has another form.",
        f"Write {form}.",
    )  # fmt: skip


def _tell_text(path: Path, detail: ErrorDetails) -> Complaint:
    value = detail["input"]
    remedy = "Write a text."
    if isinstance(value, int | float):
        remedy = f'Put it in quotes: {_last_name(path)}: "{show(value)}".'
    return Complaint(path, f"{dotted(path)} is {show(value)}, not a text.", remedy)


def _tell_truth(path: Path, detail: ErrorDetails) -> Complaint:
    return Complaint(
        path, f"{dotted(path)} is {show(detail['input'])}, not true or false.",
        f"Write {_last_name(path)}: true or {_last_name(path)}: false.",
    )  # fmt: skip


def _tell_mapping(path: Path, detail: ErrorDetails) -> Complaint:
    known = known_keys(path)
    remedy = f"Write keys and values under it ({', '.join(known[:6])})" if known else "Write keys"
    empty = ", or {} for the defaults" if detail["input"] is None and path else ""
    message = f"{dotted(path)} is {show(detail['input'])}, not a mapping."
    return Complaint(path, message[0].upper() + message[1:] if not path else message,
                     f"{remedy}{empty}.")  # fmt: skip


def _tell_list(path: Path, detail: ErrorDetails) -> Complaint:
    return Complaint(
        path, f"{dotted(path)} is {show(detail['input'])}, not a list.",
        f"Write it in brackets: {_last_name(path)}: [...].",
    )  # fmt: skip


def _tell_count(path: Path, detail: ErrorDetails) -> Complaint:
    context = detail.get("ctx", {})
    least, most = context.get("min_length"), context.get("max_length")
    limit = f"at least {least}" if least is not None else f"at most {most}"
    what = "character" if isinstance(detail["input"], str) else "entry"
    if (least if least is not None else most) != 1:
        what = "characters" if what == "character" else "entries"
    return Complaint(
        path, f"{dotted(path)} has to have {limit} {what}.", f"Give it {limit} {what}."
    )


def _tell_dimension(path: Path, detail: ErrorDetails) -> Complaint:
    return Complaint(
        path, f"{dotted(path)} is {show(detail['input'])}, not a dimension.",
        "Write a size of at least 1, or a name such as batch.",
    )  # fmt: skip


def _tell_scalar(path: Path, detail: ErrorDetails) -> Complaint:
    return Complaint(
        path, f"{dotted(path)} is {show(detail['input'])}, not a single value.",
        "Write a text, a finite number, true or false.",
    )  # fmt: skip


def _tell_other(path: Path, detail: ErrorDetails) -> Complaint:
    purpose = schema_at(path).get("description", "what the schema asks for.")
    return Complaint(path, f"{dotted(path)} is not accepted: {detail['msg']}.", f"Write {purpose}")


def _last_name(path: Path) -> str:
    return next((step for step in reversed(path) if isinstance(step, str)), "it")


_BAD_KEY = _bad_key
_BOUND_WORDS = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}
_TELLERS: Mapping[str, Callable[[Path, ErrorDetails], Complaint]] = {
    "missing": _tell_missing,
    "extra_forbidden": _tell_extra,
    "float_type": _tell_number,
    "int_type": _tell_number,
    "finite_number": _tell_number,
    "greater_than": _tell_bound,
    "greater_than_equal": _tell_bound,
    "less_than": _tell_bound,
    "less_than_equal": _tell_bound,
    "literal_error": _tell_choice,
    "string_pattern_mismatch": _tell_pattern,
    "string_type": _tell_text,
    "bool_type": _tell_truth,
    "model_type": _tell_mapping,
    "dict_type": _tell_mapping,
    "list_type": _tell_list,
    "too_short": _tell_count,
    "too_long": _tell_count,
    "string_too_short": _tell_count,
    "string_too_long": _tell_count,
    "dimension": _tell_dimension,
    "scalar": _tell_scalar,
}
