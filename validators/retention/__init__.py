"""What may be removed: engines and records that nothing refers to any more."""

from validators.retention.rules import Holder, Pruning, Use, plan_pruning, use_of

__all__ = ["Holder", "Pruning", "Use", "plan_pruning", "use_of"]
