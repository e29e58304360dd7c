"""k of n: a scheduled watch alarms only when enough of its latest windows drifted."""

from __future__ import annotations

from collections.abc import Sequence

from validators.contracts.errors import BadInput
from validators.contracts.verdict import Outcome


def alarmed(history: Sequence[Outcome], *, k: int, n: int) -> bool:
    """Whether at least `k` of the last `n` outcomes (newest last) are FAIL.

    Outcomes that decided nothing (INCONCLUSIVE, ERROR) count as windows but not as drift.
    """
    if not 1 <= k <= n:
        raise BadInput(f"{k} of {n} is no rule", remedy="Choose 1 <= k <= n.")
    return sum(outcome is Outcome.FAIL for outcome in history[-n:]) >= k
