"""One call of each verb, by name: for a caller that dies in it and for the one that comes after."""

from __future__ import annotations

from collections.abc import Callable

from tests.infra.local_target.places import SERVICE, Place


def first(place: Place) -> None:
    place.target().apply(place.revision("one"))


def second(place: Place) -> None:
    place.target().apply(place.revision("two"))


def weigh(place: Place) -> None:
    place.target().set_canary(SERVICE, 25)


def promote(place: Place) -> None:
    place.target().promote(SERVICE)


def roll_back(place: Place) -> None:
    place.target().roll_back(SERVICE, "slow")


def stop(place: Place) -> None:
    place.target().stop(SERVICE)


VERBS: dict[str, Callable[[Place], None]] = {
    "first": first,
    "second": second,
    "weigh": weigh,
    "promote": promote,
    "roll-back": roll_back,
    "stop": stop,
}
