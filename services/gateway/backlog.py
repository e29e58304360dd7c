"""What queued work will cost, learned from what ran before and from what was withdrawn. Pure."""

from __future__ import annotations

from typing import Protocol

_SMOOTHING = 0.2


class Priced(Protocol):
    """What an estimate looks at of a piece of work."""

    @property
    def source(self) -> str: ...
    @property
    def rows(self) -> int: ...


class CostEstimate:
    """Moving averages for each source: time of a row, and share of the work that comes to run.

    Under a policy that takes the first branch, most work of the others is withdrawn before it runs:
    a queue full of it is short.
    """

    def __init__(self) -> None:
        self._row_ns: dict[str, float] = {}
        self._share: dict[str, float] = {}

    @property
    def measured(self) -> bool:
        return bool(self._row_ns)

    def learn_time(self, item: Priced, elapsed_ns: int) -> None:
        row_ns = elapsed_ns / max(1, item.rows)
        known = self._row_ns.get(item.source, row_ns)
        self._row_ns[item.source] = known + _SMOOTHING * (row_ns - known)

    def learn_fate(self, item: Priced, *, ran: bool) -> None:
        known = self._share.get(item.source, 1.0)
        self._share[item.source] = known + _SMOOTHING * (float(ran) - known)

    def run_ns(self, item: Priced) -> float:
        """How long it takes once it runs; nothing where its source has not run yet."""
        return item.rows * self._row_ns.get(item.source, 0.0)

    def expected_ns(self, item: Priced) -> float:
        """How long it holds up what stands behind it."""
        return self.run_ns(item) * self._share.get(item.source, 1.0)
