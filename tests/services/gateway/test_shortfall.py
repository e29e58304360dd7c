"""What is said of a request that got no answer."""

from __future__ import annotations

import pytest

from services.gateway.shortfall import explain_failed, explain_late
from validators.contracts.errors import BadInput, Unavailable


@pytest.mark.parametrize(
    ("late", "timeouts_ms", "waited", "said", "remedy"),
    [
        (("image",), {"image": 200.0}, False, "branch image (200 ms) ran out of its own",
         "branches.image.timeout_ms"),
        (("image", "text"), {"image": 200.0, "text": 90.5}, False,
         "branches image (200 ms) and text (90.5 ms) ran out of their own",
         "branches.image.timeout_ms and branches.text.timeout_ms"),
        (("image", "text"), {"image": 200.0, "text": None}, True, "request's deadline has passed",
         "x-request-timeout-ms"),
        (("text",), {"text": None}, False, "request's deadline has passed",
         "x-request-timeout-ms"),
        (("image",), {"image": 200.0}, True, "request's deadline has passed",
         "x-request-timeout-ms"),
    ],
)  # fmt: skip
def test_the_time_that_ran_out_is_named_with_what_to_raise(
    late: tuple[str, ...],
    timeouts_ms: dict[str, float | None],
    waited: bool,
    said: str,
    remedy: str,
) -> None:
    error = explain_late(late, timeouts_ms, waited)
    assert said in error.what
    assert remedy in error.remedy


def test_what_failed_is_said_before_that_nothing_was_recognised() -> None:
    gone = Unavailable("the device is gone")
    assert explain_failed(["image", "text"], [None, gone]) is gone
    assert isinstance(explain_failed(["audio"], [None]), BadInput)
    assert explain_failed([], []) is None
