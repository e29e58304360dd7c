"""What may be in an alert, and what it is called."""

from __future__ import annotations

from typing import Any

import pytest

from tests.infra.alerts.receiver import make_alert
from validators.contracts.alerts import AlertState
from validators.contracts.errors import BadInput


def test_messages_about_one_thing_have_one_fingerprint_and_ids_of_their_own() -> None:
    fired, again = make_alert(1000), make_alert(2000, started_ms=1000)
    ended = make_alert(3000, AlertState.RESOLVED, started_ms=1000)
    assert len({item.fingerprint for item in (fired, again, ended)}) == 1
    assert len({item.id for item in (fired, again, ended)}) == 3
    assert fired.id == make_alert(1000).id


@pytest.mark.parametrize("change", [
    {"labels": (("service", "ada@example.org"),)},
    {"labels": (("service", "two words"),)},
    {"labels": (("service", ""),)},
    {"labels": (("service", "b"), ("feature", "a"))},
    {"labels": (("service", "a"), ("service", "b"))},
    {"labels": (("a b", "c"),)},
    {"labels": tuple((f"l{n:02}", "v") for n in range(17))},
    {"name": "no name"},
    {"severity": ""},
    {"summary": "x" * 1001},
])  # fmt: skip
def test_what_is_no_identifier_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        make_alert(**change)
