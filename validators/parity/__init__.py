"""Parity: is an engine close enough to the model it was compiled from. Judges, measures nothing."""

from validators.parity.gate import GATE, assess_parity

__all__ = ["GATE", "assess_parity"]
