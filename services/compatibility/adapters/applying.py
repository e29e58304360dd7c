"""A registered adapter loaded as an engine, and vectors sent through it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from services.children.scratch import scratch
from services.compatibility.adapters.graph import INPUT, OUTPUT
from services.engines.load import load_engine
from validators.compatibility.adapters import AdapterRecord
from validators.contracts.errors import BadInput
from validators.contracts.origin import VectorOrigin, require_mix
from validators.contracts.ports import ObjectStore, RunningEngine, Verifier

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class LoadedAdapter:
    """A registered adapter that runs."""

    record: AdapterRecord
    engine: RunningEngine

    def __call__(self, vectors: Array, origin: VectorOrigin) -> Array:
        """Vectors [batch, new_dim] of this origin in the old space, [batch, old_dim], unit rows.

        Raises:
            Refused: vectors of another encoder or engine than the adapter was fitted on.
            BadInput: another width, or numbers that are not finite.
        """
        require_mix(self.record.new, origin, where=f"adapter of {self.record.encoder}")
        return apply_adapter(self.engine, vectors)


@contextmanager
def load_adapter_engine(
    record: AdapterRecord, store: ObjectStore, verifier: Verifier, workdir: Path
) -> Iterator[LoadedAdapter]:
    """The adapter of a record that `find_adapters` gave, closed at the end.

    Raises:
        NotFound, Refused, Unavailable: as `services.engines.load.load_engine`.
    """
    with scratch(workdir) as folder:
        path = folder / "adapter"
        store.fetch(record.engine, path)
        engine = load_engine(
            store.get(record.manifest), path, verifier=verifier, engine_key=record.engine_key
        )
        try:
            yield LoadedAdapter(record, engine)
        finally:
            engine.close()


def apply_adapter(engine: RunningEngine, vectors: Array) -> Array:
    """Rows through an adapter's engine, in batches that its profile takes."""
    if vectors.ndim != 2 or not len(vectors):
        raise BadInput(
            f"an adapter was given {list(vectors.shape)}",
            where=engine.manifest.spec.encoder,
            remedy="Give vectors [batch, D], one at least.",
        )
    largest = max(item.ranges[0].maximum[0] for item in engine.manifest.spec.profiles)
    rows = np.ascontiguousarray(vectors, np.float32)
    return np.concatenate(
        [
            engine.run({INPUT: rows[start : start + largest]})[OUTPUT]
            for start in range(0, len(rows), largest)
        ]
    )
