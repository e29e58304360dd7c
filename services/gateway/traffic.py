"""How requests are split over two revisions: deterministic, by the hash of a key. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from validators.contracts.errors import BadInput

_SLOTS = 10_000


@dataclass(frozen=True, slots=True)
class Traffic:
    """`percent` (0..100) of the keys go to `canary`, the rest to `stable`. One value, one swap."""

    stable: str | None = None
    canary: str | None = None
    percent: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.percent <= 100:
            raise BadInput(
                f"{self.percent} is not a percentage", where="percent", remedy="Give 0 to 100."
            )
        if self.canary is None and self.percent:
            raise BadInput(
                "a percentage needs a canary", where="canary", remedy="Name the canary, or give 0."
            )
        if self.canary is not None and self.canary in (None, self.stable):
            raise BadInput("the canary is the stable revision itself", where="canary")
        if self.stable is None and self.canary is not None:
            raise BadInput("a canary needs a stable revision beside it", where="stable")

    def choose(self, key: str) -> str | None:
        """The revision for this key: the same one as long as the split stays.

        A key on the canary at one percentage stays on it at every higher one.
        """
        if self.canary is not None and slot_of(key) < self.percent * _SLOTS // 100:
            return self.canary
        return self.stable

    def share(self, name: str) -> int:
        """The percentage that goes to the named revision."""
        if name == self.canary:
            return self.percent
        return 100 - self.percent if name == self.stable else 0


def slot_of(key: str) -> int:
    """A key's place among 10 000, spread evenly."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % _SLOTS
