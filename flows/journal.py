"""The step journal: a finished step is found again by what went into it, and not done twice.

A step's key is the digest of its name, the code and the inputs; its result is a document in the
object store behind the reference `steps/<name>/<key>`. The reference is written last, so a killed
step leaves either nothing or everything, and a run that starts again resumes where it stopped.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from validators.contracts.digest import (
    Digest,
    canonical_json,
    digest_bytes,
    digest_value,
    hex_of,
)
from validators.contracts.documents import load
from validators.contracts.errors import Conflict, NotFound, Refused
from validators.contracts.ports import ObjectStore

T = TypeVar("T")

_PACKAGES = ("validators", "services", "infra", "flows")


@dataclass(frozen=True, slots=True)
class StepRun:
    """What one step of a run took; `cached` says that its result was found, not made."""

    name: str
    cached: bool
    wall_s: float
    cpu_s: float
    peak_memory_mb: float


class Journal:
    """Recalls and records steps in an object store. One instance serves one run."""

    def __init__(self, store: ObjectStore, *, code: Digest | None = None) -> None:
        self._store = store
        self._code = code or code_digest()
        self.runs: list[StepRun] = []

    def perform(
        self,
        name: str,
        inputs: object,
        kind: type[T],
        make: Callable[[], T],
        *,
        needs: Callable[[T], Iterable[tuple[ObjectStore, Digest]]] = lambda _: (),
        keep: Callable[[T], bool] = lambda _: True,
    ) -> T:
        """The step's result: recalled where the same inputs were seen, else made and recorded.

        Args:
            inputs: everything that decides the result, as a value with a canonical JSON form.
            needs: the objects a recalled result points to; the step is made again if one is gone.
            keep: whether a result is recorded; what chance had a part in is better made again.
        """
        reference = f"steps/{name}/{hex_of(self.key(name, inputs))}"
        watch = _Watch(name)
        value = self._recall(reference, kind)
        cached = value is not None and all(s.contains(digest) for s, digest in needs(value))
        if value is None or not cached:
            value = make()
            if keep(value):
                self._record(reference, value)
        self.runs.append(watch.stop(cached))
        return value

    def measure(self, name: str) -> Callable[[bool], None]:
        """Start timing a step that finds its own results; call what is returned when it is done.

        Its argument says whether the result was found. Steps that run at once share processor time.
        """
        watch = _Watch(name)
        return lambda cached: self.runs.append(watch.stop(cached))

    def key(self, name: str, inputs: object) -> Digest:
        return digest_value("step", {"name": name, "code": self._code, "inputs": inputs})

    def _recall(self, reference: str, kind: type[T]) -> T | None:
        recorded = self._store.reference(reference)
        if recorded is None:
            return None
        try:
            return load(kind, self._store.get(recorded), where=reference)
        except (NotFound, Refused):  # lost or damaged: the step is simply made again
            return None

    def _record(self, reference: str, value: object) -> None:
        digest = self._store.put(canonical_json(value))
        seen = self._store.reference(reference)
        if seen == digest:
            return
        try:
            self._store.set_reference(reference, digest, expected=seen)
        except Conflict:  # another run finished the same step first: its result stands
            return


@cache
def code_digest() -> Digest:
    """Digest of the platform's own source: a result made by other code is never recalled."""
    root = Path(__file__).resolve().parent.parent
    files = sorted(path for package in _PACKAGES for path in (root / package).rglob("*.py"))
    return digest_value(
        "code", {str(path.relative_to(root)): digest_bytes(path.read_bytes()) for path in files}
    )


class _Watch:
    """Wall time, processor time (children included) and peak memory of one step."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._wall = time.perf_counter()
        self._cpu = _cpu_s()

    def stop(self, cached: bool) -> StepRun:
        peak_kb = max(
            resource.getrusage(who).ru_maxrss
            for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        return StepRun(
            self._name,
            cached,
            round(time.perf_counter() - self._wall, 3),
            round(_cpu_s() - self._cpu, 3),
            round(peak_kb / 1024, 1),
        )


def _cpu_s() -> float:
    usage = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(item.ru_utime + item.ru_stime for item in usage)
