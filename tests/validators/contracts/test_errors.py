from __future__ import annotations

import inspect

import pytest

from validators.contracts import errors
from validators.contracts.errors import ModalgateError

TREE = [
    item
    for _, item in inspect.getmembers(errors, inspect.isclass)
    if issubclass(item, ModalgateError)
]


def depth(kind: type[BaseException]) -> int:
    return kind.__mro__.index(ModalgateError)


def test_the_drawing_shows_the_tree_as_it_is() -> None:
    drawing = (errors.__doc__ or "").splitlines()
    for kind in TREE:
        (line,) = [item for item in drawing if kind.__name__ in item.replace("─", " ").split()]
        indent = line.index(kind.__name__)
        assert indent == 4 * depth(kind)


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_every_error_says_what_where_and_what_to_do(kind: type[ModalgateError]) -> None:
    error = kind("it broke", where="engine 7", remedy="Build it again.")
    assert error.document() == {
        "what": "it broke",
        "where": "engine 7",
        "remedy": "Build it again.",
    }
    assert str(error) == "it broke (engine 7). Build it again."
    assert kind.__doc__


def test_a_message_needs_no_place_and_no_advice() -> None:
    assert str(ModalgateError("it broke")) == "it broke"
