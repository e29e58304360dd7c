"""Real engines of the tiny text encoder, made in a second; and ones that count what they do."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import numpy as np

from services.children.phases import Phases
from services.engines.backends.catalogue import backend
from services.engines.load import open_engine
from services.engines.profiles.bounds import shape_profile
from services.engines.specs import specify
from services.engines.tensors import Arrays
from tests.services.engines.profiles.model import INPUTS, OUTPUTS, VOCABULARY, text_model
from validators.contracts.digest import digest_bytes
from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.engine import (
    EngineManifest,
    EngineSpec,
    EngineState,
    HostIdentity,
    Precision,
    ShapeProfile,
)
from validators.contracts.ports import RunningEngine, Tensors

CONTRACT = EncoderContract("text", "1.0.0", "text", INPUTS, OUTPUTS, PreprocessSpec("tensor"))
ONNX = digest_bytes(b"the tiny text encoder")


def profile(
    least: tuple[int, int], most: tuple[int, int], best: tuple[int, int] | None = None
) -> ShapeProfile:
    """(batch, tokens) of the corners."""
    corners = [dict(zip(("batch", "tokens"), sizes, strict=True))
               for sizes in (least, best or most, most)]  # fmt: skip
    return shape_profile(INPUTS, *corners)


SMALL = (profile((1, 2), (1, 8)), profile((1, 2), (4, 16), (1, 12)))
LARGE = (*SMALL, profile((1, 2), (8, 32)))


def manifest_of(spec: EngineSpec, engine: bytes) -> EngineManifest:
    return EngineManifest(
        spec.key, spec, digest_bytes(engine), len(engine), EngineState.VERIFIED,
        digest_bytes(b"log"), (), inputs=INPUTS, outputs=OUTPUTS,
    )  # fmt: skip


def real_engine(name: str, profiles: tuple[ShapeProfile, ...], folder: Path) -> RunningEngine:
    """Compiled by a backend in this process, and loaded."""
    path = folder / "model.onnx"
    path.write_bytes(text_model().SerializeToString())
    spec = specify(CONTRACT, ONNX, name, Precision.FP32, profiles)
    data = backend(name).build(spec, path, Phases(lambda _: None))
    return open_engine(manifest_of(spec, data), data, threads=1)


class CountingEngine:
    """Answers each row with its own first id; knows who is in it, and whether it was closed."""

    def __init__(
        self, profiles: tuple[ShapeProfile, ...] = SMALL, name: str = "one", **changes: Any
    ) -> None:
        spec = dataclasses.replace(
            EngineSpec(
                "text", ONNX, "numpy", "2", Precision.FP32, profiles, HostIdentity("cpu", "here"),
                (("name", name),),
            ),
            **changes,
        )  # fmt: skip
        self.manifest = manifest_of(spec, name.encode())
        self.shapes: list[tuple[int, ...]] = []
        self.closed = 0
        self.used_after_close = 0
        self.closed_while_used = 0
        self._inside = 0
        self._lock = threading.Lock()

    def run(self, feeds: Tensors) -> Arrays:
        with self._lock:
            self._inside += 1
            self.used_after_close += bool(self.closed)
            self.shapes.append(feeds["ids"].shape)
        ids = feeds["ids"]
        features = np.repeat(ids[:, :, None], 8, axis=2).astype(np.float32)
        with self._lock:
            self._inside -= 1
        return {"embedding": features[:, 0, :].copy(), "features": features}

    def close(self) -> None:
        with self._lock:
            self.closed += 1
            self.closed_while_used += bool(self._inside)


def request(seed: int, batch: int, tokens: int) -> Arrays:
    """Ids, and masks that keep at least the first token of each row."""
    draw = np.random.default_rng(seed)
    kept = draw.integers(1, tokens + 1, batch)
    return {
        "ids": draw.integers(0, VOCABULARY, (batch, tokens)),
        "mask": (np.arange(tokens)[None] < kept[:, None]).astype(np.int64),
    }
