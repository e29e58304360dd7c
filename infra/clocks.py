"""The real clocks: the only module that reads them."""

from __future__ import annotations

import time


class SystemClock:
    """The machine's clocks behind the `Clock` port."""

    def monotonic_ns(self) -> int:
        """Nanoseconds that never run backwards: for deadlines and durations."""
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch: for records only, never for a decision."""
        return time.time_ns()
