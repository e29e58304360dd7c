from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from validators.contracts.yaml_lines import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_NODES,
    read_yaml,
    resolve_scalar,
)


def fault_of(text: str) -> str:
    document = read_yaml(text)
    assert document.value is None
    return document.faults[0].message


def test_every_value_has_its_line() -> None:
    document = read_yaml("a: 1\nb:\n  - x\n  - {c: 2,\n     d: 3}\n")
    assert document.value == {"a": 1, "b": ["x", {"c": 2, "d": 3}]}
    lines = {path: document.line_of(path) for path in [("a",), ("b",), ("b", 0), ("b", 1, "d")]}
    assert list(lines.values()) == [1, 2, 3, 5]


def test_a_path_that_is_not_there_has_the_line_of_what_is_around_it() -> None:
    document = read_yaml("a:\n  b: 1\n")
    assert document.line_of(("a", "missing")) == 1
    assert document.line_of(("a", "b", "deeper", 3)) == 2
    assert document.line_of(("other",)) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"), ("no", "no"), ("on", "on"), ("1:30", "1:30"), ("2031-06-30", "2031-06-30"),
        ("0x10", "0x10"), ("1_000", "1_000"), ("1e3", 1000.0), ("010", 10), ("-5", -5),
        (".5", 0.5), ("5.", 5.0), ("true", True), ("False", False), ("~", None), ("", None),
        ("1.0.0", "1.0.0"), ("=", "="), ("9" * 5000, float("inf")),
    ],
)  # fmt: skip
def test_plain_scalars_follow_the_core_schema(text: str, value: object) -> None:
    found = resolve_scalar(text)
    assert (found, type(found)) == (value, type(value))


def test_quotes_make_a_text() -> None:
    assert read_yaml("a: '1'\nb: \"true\"\nc: |\n  2\n").value == {
        "a": "1",
        "b": "true",
        "c": "2\n",
    }


def test_duplicate_keys_are_told_and_the_first_is_kept() -> None:
    document = read_yaml("a: 1\nb: 2\na: 3\n")
    assert document.value == {"a": 1, "b": 2}
    assert [(item.line, item.path) for item in document.faults] == [(3, ("a",))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 50 + "]" * 50, f"more than {MAX_DEPTH} levels"),
        ("- " * 1000 + "x", f"more than {MAX_DEPTH} levels"),
        ("a: " + "x" * MAX_BYTES, f"at most {MAX_BYTES}"),
        ("[" + "1," * (MAX_NODES + 1) + "]", f"more than {MAX_NODES} values"),
        ("a: &a [*a]", "stands for nothing"),
        ("a: *b", "stands for nothing"),
        ("a: !!python/object/apply:os.system [x]", "is not read"),
        ("a: !!set {x}", "is not read"),
        ("? [a]\n: b", "not a plain name"),
        ("<<: {a: 1}", "Merge keys"),
        ("a: 1\n---\nb: 2", "more than one YAML document"),
        ("a: b: c", "not YAML"),
        ("a: [1", "not YAML"),
        ("\ta: 1", "not YAML"),
        ("a: \x00", "not YAML"),
        ('a: "\\UFFFFFFFF"', "out of range"),
        ('a: "\\ud800"', "surrogate"),
        ("\ud800", "not YAML"),
    ],
)
def test_what_is_unbounded_or_unreadable_is_refused(text: str, message: str) -> None:
    assert message in fault_of(text)


def test_an_alias_bomb_is_refused_before_it_is_built() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 15)]
    assert f"more than {MAX_NODES} values" in fault_of("\n".join(levels))


def test_an_alias_stands_for_its_value_with_the_lines_of_the_anchor() -> None:
    document = read_yaml("a: &x {b: 1}\nc: *x\n")
    assert document.value == {"a": {"b": 1}, "c": {"b": 1}}
    assert (document.line_of(("c",)), document.line_of(("c", "b"))) == (2, 1)


@given(st.text() | st.text(alphabet="{}[]:,-&*!|>'\"%#?~ \n\\aU1"))
@settings(max_examples=400, deadline=None)
def test_any_text_is_read_or_has_a_fault(text: str) -> None:
    document = read_yaml(text)
    for fault in document.faults:
        assert 1 <= fault.line <= text.count("\n") + 2


scalars = st.text(alphabet="abc xyz", min_size=1).filter(lambda text: text.strip() == text)
trees = st.recursive(
    st.integers(-1000, 1000) | st.booleans() | st.none() | scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(scalars, inner, max_size=4),
    max_leaves=20,
)


@given(trees)
@settings(max_examples=200, deadline=None)
def test_what_a_yaml_writer_wrote_is_read_back(tree: object) -> None:
    document = read_yaml(yaml.safe_dump(tree, allow_unicode=True))
    if not document.faults:  # deeper than MAX_DEPTH
        assert document.value == tree
