"""Sequential tests on shares of bad requests, valid whenever one looks (e-processes).

An e-process starts at 1 and stays at or below 1 in expectation while the null hypothesis holds,
so by Ville's inequality it ever reaches 1/alpha with probability alpha at most, however often and
whenever it is looked at. (Ramdas, Gruenwald, Vovk and Shafer, "Game-theoretic statistics and safe
anytime-valid inference", Statistical Science 38, 2023.)

*Against the baseline*: "the canary's share is at most the baseline's", by the e-variable of Turner,
Ly and Gruenwald, "Generic e-variables for exact sequential k-sample tests that allow for optional
stopping", J. Stat. Planning and Inference 230, 2024: with an alternative (c, s), c > s, and a block
of n requests on the canary and m on the baseline, let p = (n c + m s) / (n + m); then

    S = (c/p)^bad_n ((1-c)/(1-p))^good_n (s/p)^bad_m ((1-s)/(1-p))^good_m

For a common share q the expectation is f(q)^n g(q)^m with f, g linear in q and n f + m g = n + m,
so at most 1 by the inequality of means; q may differ from block to block (load, time of day).

*Against a limit*: the likelihood ratio of c > limit, for "the share is at most the limit".

The alternatives are odds ratios over what the baseline showed *before* the block; their mean is
again an e-process. A canary that is worse by less than the least ratio costs the bet money: it is
not rolled back for a difference that nobody would notice.
"""

from __future__ import annotations

import math

ODDS_RATIOS = (2.0, 4.0, 10.0, 30.0)
START: tuple[float, ...] = (0.0,) * len(ODDS_RATIOS)
"""Log wealth of each alternative before the first block."""

_PRIOR_REQUESTS = 50.0
_LEAST, _MOST = 5e-4, 0.5


def expected_share(bad: int, total: int, usual: float) -> float:
    """The baseline's share as far as it was seen, drawn toward a usual one by 50 requests."""
    share = (bad + _PRIOR_REQUESTS * usual) / (total + _PRIOR_REQUESTS)
    return min(max(share, _LEAST, usual / 10), _MOST)


def bet_against_baseline(
    log_wealth: tuple[float, ...],
    canary: tuple[int, int],
    baseline: tuple[int, int],
    expected: float,
) -> tuple[float, ...]:
    """Log wealth after a block; `canary` and `baseline` are (bad, all), `expected` a past share."""
    if not canary[1] or not baseline[1]:
        return log_wealth
    return tuple(
        wealth + _two_sample(canary, baseline, raise_odds(expected, ratio), expected)
        for wealth, ratio in zip(log_wealth, ODDS_RATIOS, strict=True)
    )


def bet_against_limit(
    log_wealth: tuple[float, ...], canary: tuple[int, int], limit: float
) -> tuple[float, ...]:
    """Log wealth after a block whose baseline is a number: a share of `limit` is allowed."""
    limit = min(max(limit, _LEAST), _MOST)
    return tuple(
        wealth + _log_likelihood(canary, raise_odds(limit, ratio)) - _log_likelihood(canary, limit)
        for wealth, ratio in zip(log_wealth, ODDS_RATIOS, strict=True)
    )


def evidence(log_wealth: tuple[float, ...]) -> float:
    """The log of the e-value: of the mean over the alternatives."""
    peak = max(log_wealth)
    total = sum(math.exp(wealth - peak) for wealth in log_wealth)
    return peak + math.log(total / len(log_wealth))


def threshold(false_rate: float, tests: int) -> float:
    """What a log e-value has to reach for one of `tests` tests (Bonferroni)."""
    return math.log(tests / false_rate)


def raise_odds(share: float, ratio: float) -> float:
    """The share whose odds are `ratio` times those of `share`."""
    odds = ratio * share / (1 - share)
    return odds / (1 + odds)


def _two_sample(
    canary: tuple[int, int], baseline: tuple[int, int], raised: float, expected: float
) -> float:
    total = canary[1] + baseline[1]
    pooled = (canary[1] * raised + baseline[1] * expected) / total
    return (
        _log_likelihood(canary, raised)
        + _log_likelihood(baseline, expected)
        - _log_likelihood((canary[0] + baseline[0], total), pooled)
    )


def _log_likelihood(counted: tuple[int, int], share: float) -> float:
    bad, total = counted
    return bad * math.log(share) + (total - bad) * math.log1p(-share)
