"""Versions that are compared: each engine in a child process, so that none can end the gate.

A version that hangs, crashes or eats memory is a finding about that version.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from flows.release.encoding import loaded
from flows.workspace import Workspace
from services.children.errors import ChildCrashed, ChildTimedOut, ChildTooLarge
from services.compatibility.compare import EncoderVersion
from validators.compatibility.spaces import GATE
from validators.contracts.bundle import BundledEngine
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import EngineManifest
from validators.contracts.errors import Unavailable
from validators.contracts.ports import RunningEngine, Tensors
from validators.contracts.verdict import Finding, Outcome, Verdict, conclude


class VersionFailed(Unavailable):
    """The process of a version did not survive; `where` names the version."""


@dataclass(frozen=True, slots=True)
class NamedEngine:
    """An engine whose end names the version. Implements the `RunningEngine` port."""

    inner: RunningEngine
    label: str

    @property
    def manifest(self) -> EngineManifest:
        return self.inner.manifest

    def run(self, feeds: Tensors) -> dict[str, npt.NDArray[Any]]:
        """As the port says. Raises VersionFailed where the engine's process is gone."""
        with _named(self.label):
            return self.inner.run(feeds)

    def close(self) -> None:
        self.inner.close()


@contextmanager
def open_version(
    workspace: Workspace, contract: EncoderContract, engine: BundledEngine, side: str
) -> Iterator[EncoderVersion]:
    """A version by its bundled engine; `side` tells two of one number apart ("old", "new").

    Raises:
        VersionFailed: its process did not survive loading.  Otherwise as `load_engine`.
    """
    name = contract.name
    label = f"{name} {contract.version} ({side})"
    with ExitStack() as stack:
        with _named(label):
            found = stack.enter_context(
                loaded({name: engine}, {name: contract}, workspace, isolated=True)
            )
        yield EncoderVersion(contract, NamedEngine(found[name].engine, label))


def judge_failure(error: VersionFailed) -> Verdict:
    """The gate could not look at this version: an ERROR that names it."""
    finding = Finding(
        GATE, "version-failed", error.where, Outcome.ERROR, error.what, "an answer",
        "Look at the model: its process did not survive the items.",
    )  # fmt: skip
    return conclude(GATE, [finding], examined=1)


@contextmanager
def _named(label: str) -> Iterator[None]:
    try:
        yield
    except (ChildCrashed, ChildTimedOut, ChildTooLarge) as error:
        raise VersionFailed(error.what, where=label, remedy=error.remedy) from error
