"""What a receiver of signed alerts accepts, and what it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.alerts.signature import (
    DELIVERY,
    SIGNATURE,
    TIMESTAMP,
    TOLERANCE_S,
    DeliveryCheck,
    secrets_of,
    sign,
)
from validators.contracts.errors import BadInput, Refused

NEW, OLD = b"n" * 32, b"o" * 32
NOW_S = 1_700_000_000


@given(st.binary(max_size=64), st.text(st.characters(codec="ascii", exclude_characters="\x00"),
                                       min_size=1, max_size=64))  # fmt: skip
def test_what_is_signed_is_accepted_once(body: bytes, delivery: str) -> None:
    check = DeliveryCheck([NEW])
    headers = sign([NEW], delivery, body, NOW_S)
    assert check.accept(headers, body, NOW_S + 10)
    assert not check.accept(headers, body, NOW_S + 20), "a replay is told from the first"


def test_while_secrets_change_either_side_may_have_either() -> None:
    both = sign([NEW, OLD], "d", b"body", NOW_S)
    assert DeliveryCheck([OLD]).accept(both, b"body", NOW_S)
    assert DeliveryCheck([NEW]).accept(both, b"body", NOW_S)
    assert DeliveryCheck([NEW, OLD]).accept(sign([OLD], "d", b"body", NOW_S), b"body", NOW_S)


def test_the_names_of_headers_are_of_any_case() -> None:
    headers = {name.title(): value for name, value in sign([NEW], "d", b"", NOW_S).items()}
    assert DeliveryCheck([NEW]).accept(headers, b"", NOW_S)


@pytest.mark.parametrize(("change", "body", "later_s"), [
    ({}, b"other", 0),
    ({DELIVERY: "another"}, b"body", 0),
    ({TIMESTAMP: str(NOW_S + 1)}, b"body", 0),
    ({TIMESTAMP: "now"}, b"body", 0),
    ({TIMESTAMP: "²"}, b"body", 0),
    ({TIMESTAMP: ""}, b"body", 0),
    ({SIGNATURE: ""}, b"body", 0),
    ({SIGNATURE: "v1="}, b"body", 0),
    ({SIGNATURE: "v0=" + "0" * 64}, b"body", 0),
    ({SIGNATURE: "v1=é"}, b"body", 0),
    ({}, b"body", TOLERANCE_S + 1),
    ({}, b"body", -TOLERANCE_S - 1),
])  # fmt: skip
def test_what_was_changed_or_is_old_is_refused(
    change: dict[str, str], body: bytes, later_s: int
) -> None:
    headers = sign([NEW], "d", b"body", NOW_S) | change
    with pytest.raises(Refused):
        DeliveryCheck([NEW]).accept(headers, body, NOW_S + later_s)


def test_a_delivery_signed_by_another_is_refused() -> None:
    with pytest.raises(Refused):
        DeliveryCheck([NEW]).accept(sign([OLD], "d", b"", NOW_S), b"", NOW_S)


def test_the_memory_of_a_receiver_is_bounded() -> None:
    check = DeliveryCheck([NEW], memory=3)
    for number in range(10):
        assert check.accept(sign([NEW], str(number), b"", NOW_S), b"", NOW_S)
    assert len(check._seen) == 3


@pytest.mark.parametrize("text", ["", "short", "a" * 31, " ".join(["a" * 32] * 3)])
def test_a_weak_secret_is_refused_without_being_told(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        secrets_of(text)
    assert not text or text not in str(caught.value)


def test_two_secrets_may_be_in_force() -> None:
    assert secrets_of(f"{'a' * 32} {'b' * 40}") == (b"a" * 32, b"b" * 40)
