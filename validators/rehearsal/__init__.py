"""The SLO rehearsal: replayed requests against the objective, before anybody depends on it."""

from validators.rehearsal.verdict import PairScores, assess_rehearsal

__all__ = ["PairScores", "assess_rehearsal"]
