from __future__ import annotations

import uuid

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.deidentify.pseudonyms import ReleaseKey, keyed_order, pseudonym
from validators.contracts.errors import BadInput

KEY = ReleaseKey(b"a" * 32, "storefront")


def test_a_pseudonym_is_pinned_by_key_scope_kind_and_value() -> None:
    assert pseudonym(KEY, "PERSON", "Eileen Collins") == "3c95b56c-862f-4886-b6e4-c98787dc2cc8"


@given(st.text(min_size=1, max_size=30))
def test_a_pseudonym_has_the_form_of_a_version_4_uuid(value: str) -> None:
    parsed = uuid.UUID(pseudonym(KEY, "PERSON", value))
    assert parsed.version == 4
    assert parsed.variant == uuid.RFC_4122


@pytest.mark.parametrize(
    "same", ["EILEEN COLLINS", "eileen  collins", " Eileen\tCollins", "Ｅileen Collins"]
)
def test_writing_a_name_differently_does_not_make_another_person(same: str) -> None:
    assert pseudonym(KEY, "PERSON", same) == pseudonym(KEY, "PERSON", "Eileen Collins")


@pytest.mark.parametrize(
    "other", [ReleaseKey(b"b" * 32, "storefront"), ReleaseKey(b"a" * 32, "another")]
)
def test_another_key_or_scope_cannot_be_linked(other: ReleaseKey) -> None:
    assert pseudonym(other, "PERSON", "x") != pseudonym(KEY, "PERSON", "x")
    assert other.key_id != KEY.key_id


def test_parts_of_a_message_cannot_be_shifted_into_each_other() -> None:
    assert KEY.derive("p", b"ab", b"c") != KEY.derive("p", b"a", b"bc")


@pytest.mark.parametrize(("secret", "scope"), [(b"short", "s"), (b"a" * 32, "")])
def test_a_weak_key_is_refused(secret: bytes, scope: str) -> None:
    with pytest.raises(BadInput):
        ReleaseKey(secret, scope)


def test_the_secret_is_not_shown() -> None:
    assert "aaaa" not in repr(KEY)


@given(st.integers(0, 300), st.binary(max_size=8))
def test_an_order_is_a_permutation_that_can_be_repeated(count: int, context: bytes) -> None:
    order = keyed_order(KEY, count, context)
    assert sorted(order.tolist()) == list(range(count))
    np.testing.assert_array_equal(order, keyed_order(KEY, count, context))


def test_orders_of_two_places_differ() -> None:
    assert keyed_order(KEY, 100, b"one").tolist() != keyed_order(KEY, 100, b"two").tolist()
