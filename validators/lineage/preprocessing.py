"""What was done to a medium before a model saw it, named by a digest of the steps."""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts.digest import Digest, digest_value

Setting = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a medium: by which stage, what it is called, in which version.

    The version rises whenever the same input and settings would give other bytes. `settings` are
    sorted by name.
    """

    stage: str  # "ingest", "deidentify"
    name: str
    version: int
    settings: tuple[tuple[str, Setting], ...] = ()


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """The steps that every medium of one modality went through, in order."""

    modality: str
    steps: tuple[Step, ...]

    @property
    def digest(self) -> Digest:
        return digest_value("preprocessing", self)
