"""Options of a preprocessing spec, read once, strictly."""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Options:
    """Typed access to the options of one kind; every refusal names the option."""

    kind: str
    values: dict[str, Scalar]

    def text(self, name: str, default: str, allowed: tuple[str, ...] = ()) -> str:
        value = self.values.get(name, default)
        if not isinstance(value, str) or not value or (allowed and value not in allowed):
            raise self._refuse(name, value, " or ".join(allowed) or "a name")
        return value

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        value = self.values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._refuse(name, value, f"a whole number from {low} to {high}")
        return value

    def number(self, name: str, default: float, low: float, high: float) -> float:
        value = self.values.get(name, default)
        if isinstance(value, bool | str) or not low <= value <= high:
            raise self._refuse(name, value, f"a number from {low:g} to {high:g}")
        return float(value)

    def numbers(self, name: str, default: float) -> tuple[float, ...]:
        """One number, or several written in one text: "123.7, 116.3, 103.5"."""
        value = self.values.get(name, default)
        if isinstance(value, bool):
            raise self._refuse(name, value, "a number or numbers with commas")
        try:
            return tuple(float(part) for part in str(value).split(","))
        except ValueError as error:
            raise self._refuse(name, value, "a number or numbers with commas") from error

    def _refuse(self, name: str, value: object, wanted: str) -> BadInput:
        return BadInput(
            f"option {name} of {self.kind} preprocessing is {value!r}",
            where=f"preprocess.options.{name}",
            remedy=f"Write {wanted}.",
        )


def read_options(spec: PreprocessSpec, known: tuple[str, ...]) -> Options:
    """The spec's options.

    Raises:
        BadInput: an option that the kind does not have.
    """
    values = dict(spec.options)
    for name in values:
        if name not in known:
            raise BadInput(
                f"{spec.kind} preprocessing has no option {name!r}",
                where=f"preprocess.options.{name}",
                remedy=f"Use one of: {', '.join(known)}.",
            )
    return Options(spec.kind, values)
