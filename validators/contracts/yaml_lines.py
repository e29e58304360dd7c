"""YAML text → plain values, with the line of every value, within bounds.

PyYAML's event stream is composed here rather than by its constructors, because the user's file
needs what those do not give: a line for each value, duplicate keys refused, and bounds on depth,
size and alias expansion that hold before anything is built. Plain scalars follow the YAML 1.2 core
schema (`yes` is a text, `1:30` is a text, `1e3` is a number), which is also what editors apply.
No tag is ever honoured, so no Python object is ever made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import yaml

MAX_BYTES = 1_000_000
MAX_DEPTH = 20
MAX_NODES = 20_000
"""Of values, aliases counted as what they stand for."""

Path = tuple[str | int, ...]

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {
    text: value
    for word, value in (("true", True), ("false", False))
    for text in (word, word.capitalize(), word.upper())
}
_INT = re.compile(r"[-+]?[0-9]{1,40}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,4})?")
_NOT_FINITE = re.compile(r"([-+]?\.(inf|Inf|INF))|\.(nan|NaN|NAN)")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with the text as YAML. Lines count from 1."""

    line: int
    path: Path
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """The value, where each part of it stands, and what was wrong.

    `value` is None where a fault left nothing to read; faults with a value are duplicate keys.
    """

    value: object
    lines: Mapping[Path, int]
    faults: tuple[Fault, ...] = ()

    def line_of(self, path: Path) -> int:
        """The line of the value at `path`, or of the nearest thing around it."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return 1


def read_yaml(text: str) -> YamlDocument:
    """Read one document. Never raises: what is wrong is in `faults`."""
    size = len(text.encode(errors="replace"))
    if size > MAX_BYTES:
        return _only(
            Fault(
                1, (), f"The file has {size} bytes; at most {MAX_BYTES} are read.",
                "Move data out of the file: it describes a service, it does not hold it.",
            )
        )  # fmt: skip
    composer = _Composer(text)
    try:
        node = composer.document()
    except _Stop as stop:
        return _only(stop.fault)
    except yaml.YAMLError as error:
        return _only(_syntax_fault(error))
    except (ValueError, OverflowError):  # PyYAML lets these out of numeric escapes and directives
        return _only(
            Fault(composer.line, (), "An escape or directive has a number that is out of range.",
                  "Write the character itself instead of its escape."),
        )  # fmt: skip
    lines: dict[Path, int] = {}
    value = _flatten(node, (), lines) if node is not None else None
    return YamlDocument(value, lines, tuple(composer.faults))


@dataclass(frozen=True, slots=True)
class _Node:
    line: int
    value: str | int | float | bool | None = None
    items: tuple[_Node, ...] | None = None
    entries: tuple[tuple[str, int, _Node], ...] | None = None
    size: int = 1
    height: int = 1


class _Stop(Exception):
    """The text cannot be read further."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class _Composer:
    """Events in, nodes out; recursion is bounded by MAX_DEPTH."""

    def __init__(self, text: str) -> None:
        self.faults: list[Fault] = []
        self.line = 1
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.SafeLoader)
        self._anchors: dict[str, _Node | None] = {}
        self._count = 0

    def document(self) -> _Node | None:
        root: _Node | None = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    self._stop(event, "The file holds more than one YAML document.",
                               "Keep one service in one file; remove the second ---.")  # fmt: skip
                root = self._node(self._next(), (), 1)
        return root

    def _next(self) -> yaml.Event:
        event = next(self._events)
        self.line = _line(event)
        return event

    def _node(self, event: yaml.Event, path: Path, depth: int) -> _Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            self._anchors[anchor] = None
        node = self._fresh(event, path, depth)
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _alias(self, event: yaml.AliasEvent, depth: int) -> _Node:
        name = event.anchor or ""
        node = self._anchors.get(name)
        if node is None:
            self._stop(event, f"The alias *{name[:40]} stands for nothing above it.",
                       "Write the value out, or define the anchor on an earlier line.")  # fmt: skip
        self._grow(event, node.size, depth + node.height - 1)
        return node

    def _fresh(self, event: yaml.Event, path: Path, depth: int) -> _Node:
        self._grow(event, 1, depth)
        tag = getattr(event, "tag", None)
        if tag is not None and tag != "!":
            self._stop(event, f"The tag {tag[:60]!r} is not read.", "Remove the tag.")
        if isinstance(event, yaml.ScalarEvent):
            return _Node(self.line, self._scalar(event))
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, depth)
        return self._mapping(path, depth)

    def _scalar(self, event: yaml.ScalarEvent) -> str | int | float | bool | None:
        text = self._text(event)
        return resolve_scalar(text) if event.implicit[0] else text

    def _text(self, event: yaml.ScalarEvent) -> str:
        text = str(event.value)
        if not text.isascii() and text != text.encode(errors="replace").decode():
            self._stop(event, "A text has half of a surrogate pair, which is no character.",
                       "Write the character itself instead of its escape.")  # fmt: skip
        return text

    def _sequence(self, path: Path, depth: int) -> _Node:
        line, items = self.line, list[_Node]()
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items)), depth + 1))
        size, height = _extent(items)
        return _Node(line, items=tuple(items), size=size, height=height)

    def _mapping(self, path: Path, depth: int) -> _Node:
        line, entries = self.line, dict[str, tuple[str, int, _Node]]()
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key, key_line = self._key(event), self.line
            node = self._node(self._next(), (*path, key), depth + 1)
            if key in entries:
                self.faults.append(_duplicate(path, key, entries[key][1], key_line))
            else:
                entries[key] = (key, key_line, node)
        size, height = _extent([node for _, _, node in entries.values()])
        return _Node(line, entries=tuple(entries.values()), size=size, height=height)

    def _key(self, event: yaml.Event) -> str:
        if not isinstance(event, yaml.ScalarEvent) or event.tag not in (None, "!"):
            self._stop(event, "A key is not a plain name.", "Write a name before the colon.")
        if event.value == "<<":
            self._stop(event, "Merge keys (<<) are not read.", "Write the keys out.")
        return str(self._text(event))

    def _grow(self, event: yaml.Event, size: int, depth: int) -> None:
        self._count += size
        if self._count > MAX_NODES:
            self._stop(event, f"The file stands for more than {MAX_NODES} values.",
                       "Shorten it; an alias counts as everything it stands for.")  # fmt: skip
        if depth > MAX_DEPTH:
            self._stop(event, f"The file is nested more than {MAX_DEPTH} levels deep.",
                       "Flatten it: no key of a pipeline lies that deep.")  # fmt: skip

    def _stop(self, event: yaml.Event, message: str, remedy: str) -> NoReturn:
        raise _Stop(Fault(_line(event), (), message, remedy))


def resolve_scalar(text: str) -> str | int | float | bool | None:
    """A plain scalar by YAML 1.2's core schema (section 10.3.2); octal and hex stay text."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return text


def _extent(children: Sequence[_Node]) -> tuple[int, int]:
    """Size and height of a node with these children."""
    size = 1 + sum(child.size for child in children)
    return size, 1 + max((child.height for child in children), default=0)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 1


def _flatten(node: _Node, path: Path, lines: dict[Path, int]) -> object:
    lines.setdefault(path, node.line)
    if node.items is not None:
        return [_flatten(item, (*path, index), lines) for index, item in enumerate(node.items)]
    if node.entries is None:
        return node.value
    value: dict[str, object] = {}
    for key, line, child in node.entries:
        lines[(*path, key)] = line
        value[key] = _flatten(child, (*path, key), lines)
    return value


def _duplicate(path: Path, key: str, first: int, second: int) -> Fault:
    return Fault(
        second, (*path, key),
        f"The key {key[:80]!r} is written twice, on line {first} and on line {second}.",
        "Keep one of the two.",
    )  # fmt: skip


def _syntax_fault(error: yaml.YAMLError) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    detail = (
        getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    )
    line = mark.line + 1 if mark is not None else 1
    return Fault(
        line, (), f"This is not YAML: {detail}.",
        "Look at this line and the one above for indentation, a missing colon or quotes.",
    )  # fmt: skip


def _only(fault: Fault) -> YamlDocument:
    return YamlDocument(None, {}, (fault,))
