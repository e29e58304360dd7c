"""Every error has an exit code, and every code a status."""

from __future__ import annotations

import inspect

import pytest

from flows.cli.exits import EXIT_CODES, STATUSES, exit_code
from validators.contracts import errors

TREE = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.ModalgateError)
]


@pytest.mark.parametrize("kind", TREE)
def test_every_error_of_the_tree_has_its_own_entry(kind: type[errors.ModalgateError]) -> None:
    assert kind in EXIT_CODES
    assert EXIT_CODES[kind] in STATUSES
    assert exit_code(kind("what")) == EXIT_CODES[kind]


def test_an_error_that_a_room_adds_takes_its_ancestors_code() -> None:
    class Narrower(errors.Blocked):
        """A room's own."""

    assert exit_code(Narrower("what")) == EXIT_CODES[errors.Blocked]
