"""What a share that was seen says about the share that is."""

from __future__ import annotations

from scipy.special import betaincinv

CONFIDENCE = 0.95


def upper_share(seen: int, items: int) -> float:
    """The exact one-sided 95 % upper bound on a share (Clopper and Pearson, Biometrika 26, 1934).

    For none seen it is 1 - 0.05 ** (1 / items), which the rule of three, 3 / items, is close to.
    """
    if items <= 0 or seen >= items:
        return 1.0
    return float(betaincinv(seen + 1, items - seen, CONFIDENCE))


def share_text(seen: int, items: int) -> str:
    """For people: "0 of 64 items: up to 4.6 %"."""
    bound = f"up to {_percent(upper_share(seen, items), 2)}"
    if seen == 0:
        return f"0 of {items} items: {bound}"
    return f"{seen} of {items} items: {_percent(seen / items, 3)}, {bound}"


def _percent(share: float, digits: int) -> str:
    return "100 %" if share > 0.995 else f"{100 * share:.{digits}g} %"
