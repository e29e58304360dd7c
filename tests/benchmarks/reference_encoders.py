"""The reference encoders as a benchmark compiles and times them: exported, with real inputs."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flows.examples.storefront import stamps
from flows.examples.storefront.data import build_embedded, build_stamps
from services.children.process import Limits
from services.engines.export.encoder import export_encoder
from services.engines.precision.measure import Bench
from services.engines.workshop import EngineWorkshop
from tests.flows.examples.storefront.models import encode, pipeline, preprocessor
from tests.services.engines.conftest import Yard, make_yard
from validators.contracts.engine import ShapeProfile
from validators.contracts.pipeline import EncoderEntry
from validators.contracts.ports import Tensors

PICTURES = 72
"""Of the installed set, beside the 24 that are always there."""

HELD_OUT_EVERY = 3
PROMPT = (50257, 50362)
"""Start of transcript and no time stamps, in the vocabulary of whisper tiny.en."""

EXPORTERS = 2


@dataclass(frozen=True, slots=True)
class Reference:
    """One encoder on the bench; `calibration` shares no item with what is judged."""

    entry: EncoderEntry
    bench: Bench
    calibration: tuple[Tensors, ...]


@contextmanager
def exported(
    profiles: Mapping[str, tuple[ShapeProfile, ...]] | None = None,
    names: tuple[str, ...] = ("image", "text", "speech", "speech_decoder"),
) -> Iterator[tuple[Yard, list[Reference]]]:
    """The encoders, exported into a store of their own; `profiles` instead of the pipeline's."""
    with tempfile.TemporaryDirectory(prefix="modalgate-bench-") as name:
        root = Path(name)
        (root / "work").mkdir()
        yard = make_yard(root)
        yard.workshop = EngineWorkshop(
            yard.store, yard.signer, yard.verifier, root / "locks", root / "work",
            limits=Limits(niceness=0),
        )  # fmt: skip
        items = _items(root / "data")
        entries = [pipeline().encoder(name) for name in names]
        entries = [
            dataclasses.replace(entry, profiles=(profiles or {}).get(entry.name, entry.profiles))
            for entry in entries
        ]
        with ThreadPoolExecutor(EXPORTERS) as pool:
            paths = list(
                pool.map(
                    lambda e: export_encoder(e, root, root / "work", limits=Limits(niceness=0)),
                    entries,
                )
            )
        yield (
            yard,
            [
                _reference(yard, entry, path, items[entry.name])
                for entry, path in zip(entries, paths, strict=True)
            ],
        )


def _reference(yard: Yard, entry: EncoderEntry, path: Path, items: list[Tensors]) -> Reference:
    held_out = tuple(range(HELD_OUT_EVERY - 1, len(items), HELD_OUT_EVERY))
    bench = Bench(
        entry.contract, yard.store.put_file(path), entry.profiles, entry.source, yard.root,
        yard.store, yard.root / "work", real=tuple(items), held_out=held_out,
    )  # fmt: skip
    seen = [item for at, item in enumerate(items) if at not in set(held_out)]
    return Reference(entry, bench, tuple(seen))


def _items(folder: Path) -> dict[str, list[Tensors]]:
    """Pictures, captions and recordings as the encoders take them, a batch of one each."""
    build_embedded(folder / "embedded")
    rows = _rows(folder / "embedded")
    if stamps.FOLDER.is_dir():
        build_stamps(folder / "stamps", limit=PICTURES)
        rows += _rows(folder / "stamps")
    spoken = [row for row in rows if row["folder"].name == "embedded" and "audio" in row]
    chosen = pipeline()
    image, text, speech = (preprocessor(chosen.encoder(n)) for n in ("image", "text", "speech"))
    heard = [(row["folder"] / row["audio"]).read_bytes() for row in spoken]
    memory = encode("speech", heard)["speech_memory"]
    return {
        "image": [dict(image((row["folder"] / row["image"]).read_bytes())) for row in rows],
        "text": [dict(text(row["text"])) for row in rows],
        "speech": [dict(speech(recording)) for recording in heard],
        "speech_decoder": [
            {"tokens": np.array([PROMPT], np.int64), "speech_memory": one[None]} for one in memory
        ],
    }


def _rows(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "manifest.jsonl").read_text().splitlines()
    return [{"folder": folder, **json.loads(line)} for line in lines]
