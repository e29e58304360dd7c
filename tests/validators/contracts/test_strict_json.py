from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.strict_json import parse_strictly

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(VALUES)
def test_what_has_one_meaning_is_read(value: object) -> None:
    assert parse_strictly(json.dumps(value)) == value


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 1}', '[{"b": {"a": 1, "a": 2}}]', "NaN", "[-Infinity]", "{", b"\xff"]
)
def test_what_has_two_or_none_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        parse_strictly(text)
