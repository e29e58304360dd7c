"""Every error has one HTTP status and one gRPC code."""

from __future__ import annotations

import grpc
import pytest

from services.gateway.status import STATUSES, status_of
from validators.contracts.errors import BadInput, ModalgateError


def tree(kind: type[ModalgateError]) -> list[type[ModalgateError]]:
    # Other packages may draw subtrees of their own; the words of the contracts are the total.
    own = [kind] if kind.__module__ == ModalgateError.__module__ else []
    return own + [found for child in kind.__subclasses__() for found in tree(child)]


@pytest.mark.parametrize("kind", tree(ModalgateError))
def test_the_map_holds_every_error_of_the_contracts(kind: type[ModalgateError]) -> None:
    status = STATUSES[kind]
    assert hasattr(grpc.StatusCode, status.grpc)
    assert 400 <= status.http <= 504
    assert (status.http < 500) == (status.outcome in ("bad_input", "overloaded") or
                                   status.http in (403, 409))  # fmt: skip


def test_the_map_holds_nothing_else() -> None:
    assert set(STATUSES) == set(tree(ModalgateError))


def test_a_narrower_error_has_the_status_of_its_kind() -> None:
    class Narrow(BadInput):
        pass

    assert status_of(Narrow("x")) == STATUSES[BadInput]
