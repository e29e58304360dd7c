"""A data set through the engines that the target will run: what was measured is what is served."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flows.interruption import told_to_end
from flows.workspace import Workspace
from services.children.scratch import scratch
from services.engines.isolated import open_isolated
from services.engines.load import load_engine
from services.engines.manifest import open_manifest
from services.preprocess.preprocessor import Preprocessor, RawInput, make_preprocessor
from validators.contracts.bundle import BundledEngine
from validators.contracts.encoder import EncoderContract
from validators.contracts.ports import RunningEngine

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Encoder:
    """A loaded encoder with its preprocessing: raw input in, named outputs out."""

    contract: EncoderContract
    engine: RunningEngine
    preprocess: Preprocessor

    def __call__(self, raw: RawInput) -> dict[str, Array]:
        """The outputs for one input, a batch of one."""
        return self.engine.run(self.preprocess(raw))

    def over(
        self,
        inputs: Sequence[RawInput],
        outputs: Sequence[str],
        advanced: Callable[[int, int], None] = lambda done, total: None,
    ) -> dict[str, Array]:
        """Each named output over all inputs, [N, ...], one input at a time."""
        rows: dict[str, list[Array]] = {name: [] for name in outputs}
        for done, raw in enumerate(inputs, start=1):
            found = self(raw)
            for name in outputs:
                rows[name].append(found[name][0])
            advanced(done, len(inputs))
        return {name: np.stack(values) for name, values in rows.items() if values}


@contextmanager
def loaded(
    engines: Mapping[str, BundledEngine],
    contracts: Mapping[str, EncoderContract],
    workspace: Workspace,
    *,
    isolated: bool = False,
) -> Iterator[dict[str, Encoder]]:
    """The encoders by name, loaded from the store and closed at the end.

    `isolated`: each engine in a child process of its own (see `services.engines.isolated`).
    """
    store = workspace.store
    with scratch(workspace.home.folder("engines", "work")) as folder:
        found: dict[str, Encoder] = {}
        try:
            for name, engine in engines.items():
                own = folder / name
                own.mkdir()
                store.fetch(engine.engine, own / "engine")
                sealed = store.get(engine.manifest)
                running = (_isolated if isolated else _in_process)(workspace, sealed, own)
                preprocess = make_preprocessor(contracts[name].preprocess, store.get)
                found[name] = Encoder(contracts[name], running, preprocess)
            yield found
        finally:
            for encoder in found.values():
                encoder.engine.close()


def _in_process(workspace: Workspace, sealed: bytes, folder: Path) -> RunningEngine:
    return load_engine(sealed, folder / "engine", verifier=workspace.verifier)


def _isolated(workspace: Workspace, sealed: bytes, folder: Path) -> RunningEngine:
    manifest = open_manifest(sealed, workspace.verifier)
    return open_isolated(manifest, folder / "engine", folder, cancel=told_to_end)
