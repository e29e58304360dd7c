"""The mark of the platform's own requests, by which a gateway leaves them out of what it records.

    Modalgate-Probe   hex HMAC-SHA256 of the body, under the token of the gateway's control plane

It stands for this body alone: who sees it go by can send the platform's own probe again, and can
keep no request of theirs from the drift watch. The token itself never passes the data plane.
"""

from __future__ import annotations

import hashlib
import hmac

HEADER = "modalgate-probe"
_PURPOSE = b"modalgate-probe\n"


def mark_probe(token: str, body: bytes) -> str:
    """The mark of a request with this body."""
    return hmac.new(token.encode(), _PURPOSE + body, hashlib.sha256).hexdigest()


def is_probe(token: str, body: bytes, mark: str | None) -> bool:
    """Whether whoever marked the request knows the token."""
    return mark is not None and hmac.compare_digest(mark_probe(token, body).encode(), mark.encode())
