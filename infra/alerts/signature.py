"""Signed deliveries: what a webhook sends, and what its receiver checks.

    Modalgate-Timestamp   seconds since the epoch, when it was sent
    Modalgate-Delivery    the message's id, the same whenever it is sent again
    Modalgate-Signature   v1=<hex HMAC-SHA256 of "timestamp.delivery." + body>, one for each secret

A receiver refuses what is older than its tolerance and what it had already: a replay is one or the
other. Two secrets are in force while one takes the place of the other.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from validators.contracts.errors import BadInput, Refused

TIMESTAMP, DELIVERY, SIGNATURE = (
    "modalgate-timestamp", "modalgate-delivery", "modalgate-signature",
)  # fmt: skip
TOLERANCE_S = 300
MIN_SECRET_BYTES = 32
MAX_SECRETS = 2
_VERSION = "v1="


def secrets_of(text: str) -> tuple[bytes, ...]:
    """The secrets in a setting: one, or the new one and the old one with a space between them.

    Raises:
        BadInput: none, too many, or one that is too short to be a secret.
    """
    found = tuple(word.encode() for word in text.split())
    if not 1 <= len(found) <= MAX_SECRETS or any(len(s) < MIN_SECRET_BYTES for s in found):
        raise BadInput(
            f"the webhook's secret is one or {MAX_SECRETS} words of at least "
            f"{MIN_SECRET_BYTES} bytes",
            where="MODALGATE_ALERT_SECRET",
            remedy="Make one: openssl rand -hex 32",
        )
    return found


def sign(secrets: Sequence[bytes], delivery: str, body: bytes, now_s: int) -> dict[str, str]:
    """The headers of a delivery."""
    signatures = ",".join(_VERSION + _mac(secret, now_s, delivery, body) for secret in secrets)
    return {TIMESTAMP: str(now_s), DELIVERY: delivery, SIGNATURE: signatures}


class DeliveryCheck:
    """The receiver's side. Remembers deliveries as long as their time stamps are accepted."""

    def __init__(
        self, secrets: Sequence[bytes], *, tolerance_s: int = TOLERANCE_S, memory: int = 10_000
    ) -> None:
        self._secrets = tuple(secrets)
        self._tolerance_s = tolerance_s
        self._memory = memory
        self._seen: OrderedDict[str, int] = OrderedDict()

    def accept(self, headers: Mapping[str, str], body: bytes, now_s: int) -> bool:
        """True for a delivery that is new, False for one that came before: answer both with 2xx.

        Raises:
            Refused: unsigned, signed by another secret, changed on its way, or too old.
        """
        given = {name.lower(): value for name, value in headers.items()}
        stamp, delivery = given.get(TIMESTAMP, ""), given.get(DELIVERY, "")
        if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12 and delivery):
            raise _refused("the delivery is not signed")
        if abs(now_s - int(stamp)) > self._tolerance_s:
            raise _refused("the delivery is too old, or a clock is wrong")
        signatures = [
            part.strip().removeprefix(_VERSION)
            for part in given.get(SIGNATURE, "").split(",")[: 2 * MAX_SECRETS]
            if part.strip().startswith(_VERSION)
        ]
        expected = [_mac(secret, int(stamp), delivery, body) for secret in self._secrets]
        pairs = [(one.encode(), other.encode()) for one in signatures for other in expected]
        if not any(hmac.compare_digest(one, other) for one, other in pairs):
            raise _refused("the delivery's signature does not hold")
        return self._remember(delivery, now_s)

    def _remember(self, delivery: str, now_s: int) -> bool:
        fresh = delivery not in self._seen
        self._seen[delivery] = now_s
        self._seen.move_to_end(delivery)
        while len(self._seen) > self._memory:
            self._seen.popitem(last=False)
        return fresh


def _mac(secret: bytes, now_s: int, delivery: str, body: bytes) -> str:
    message = f"{now_s}.{delivery}.".encode() + body
    return hmac.new(secret, message, hashlib.sha256).hexdigest()


def _refused(what: str) -> Refused:
    return Refused(what, where="the webhook", remedy="Check the secret and the clocks.")
