"""The words of the quality gate: expectations and suites as values.

They say what Great Expectations says, in its own names, without importing it: that costs seconds,
which only the step that judges data should pay.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from validators.contracts.digest import Digest, digest_value

SAMPLE = "sample"  # the column of ids
SAMPLES = "samples"  # the suite over all samples, whatever media they have
MAX_NAMED = 20
"""Bad rows of one expectation that get a finding each; the rest is counted, and in the evidence."""

Scalar = str | int | float | bool
Argument = Scalar | tuple[Scalar, ...]


class Severity(enum.Enum):
    """Great Expectations' own: what an unmet expectation means."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation: its type in Great Expectations' words and its arguments, sorted by name.

    `rule` is how its findings are named.
    """

    type: str  # "expect_column_values_to_be_between"
    arguments: tuple[tuple[str, Argument], ...]
    rule: str
    severity: Severity = Severity.CRITICAL

    def argument(self, name: str) -> Argument | None:
        return dict(self.arguments).get(name)

    @property
    def column(self) -> str:
        """What it is about: a column, the first of a pair, or the table."""
        found = self.argument("column") or self.argument("column_A")
        return str(found) if found else "table"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that have to be there."""
        named = (self.argument(name) for name in ("column", "column_A", "column_B"))
        return tuple(str(item) for item in named if item)

    @property
    def mostly(self) -> float:
        """The least share of rows that has to fit; 1 where nothing is said."""
        found = self.argument("mostly")
        return float(found) if isinstance(found, int | float) else 1.0


Facts = tuple[tuple[str, str | int | float], ...]


@dataclass(frozen=True, slots=True)
class Suite:
    """The expectations of one modality, or of all samples, and the contract they were made from.

    `facts` is what the contract said when they were made; empty for a suite of unknown origin.
    """

    name: str
    expectations: tuple[Expectation, ...]
    facts: Facts = ()

    @property
    def origin(self) -> Digest:
        """The contract's digest, as far as this suite depends on it."""
        return digest_value("quality-contract", self.facts)


def expect(
    kind: str, rule: str, severity: Severity = Severity.CRITICAL, **arguments: Argument
) -> Expectation:
    """An expectation from its arguments in any order."""
    return Expectation(kind, tuple(sorted(arguments.items())), rule, severity)
