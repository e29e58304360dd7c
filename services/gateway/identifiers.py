"""What a caller says of a request beside its content: ids and a timeout, checked."""

from __future__ import annotations

import math
import re

from validators.contracts.errors import BadInput

_IDENTIFIER = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


def check_identifier(text: str | None) -> str | None:
    """A request's or session's id as it came; None where there is none. Raises BadInput."""
    if text and not _IDENTIFIER.fullmatch(text):
        raise BadInput(
            "an id has characters that are not taken, or more than 128",
            where="request or session id",
            remedy="Use letters, digits and . _ : / + = @ -",
        )
    return text or None


def parse_timeout_ms(text: str | None) -> float | None:
    """The `x-request-timeout-ms` of a call; None where there is none. Raises BadInput."""
    if text is None:
        return None
    try:
        timeout_ms = float(text)
    except ValueError:
        timeout_ms = math.nan
    if not math.isfinite(timeout_ms) or timeout_ms <= 0:
        raise BadInput(
            "the timeout is not a number above 0",
            where="x-request-timeout-ms",
            remedy="Give milliseconds.",
        )
    return timeout_ms
