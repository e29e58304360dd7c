"""The end of the chain, with the real encoders: a request, written or spoken, finds its picture."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from flows.examples.storefront import stamps
from flows.examples.storefront.classes import imagenet_names
from flows.examples.storefront.data import build_embedded, build_stamps
from flows.examples.storefront.speech import Speaker
from services.fusion.adapters import load_adapter
from services.fusion.training import Pairs, TrainedAdapter, train_adapter
from tests.flows.examples.storefront.models import encode, listen, pipeline

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Catalogue:
    ids: list[str]
    vectors: np.ndarray
    trained: TrainedAdapter

    def rank(self, text: str, wanted: str) -> int:
        """1 for the nearest."""
        vector = encode("text", [text])["sentence_vector"][0]
        order = np.argsort(-(self.vectors @ vector), kind="stable")
        return [self.ids[index] for index in order].index(wanted) + 1


def catalogue(folder: Path, file: str = "pipeline.yaml") -> Catalogue:
    rows = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    chosen = pipeline(file)
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
    adapter = load_adapter(trained.entry, trained.data)
    vectors = adapter(pairs.outputs[trained.entry.output])
    return Catalogue([row["id"] for row in rows], vectors, trained)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    folder = tmp_path_factory.mktemp("embedded")
    build_embedded(folder)
    return catalogue(folder)


REQUESTS = [
    ("a sleeping cat", "cat"),
    ("a cup of coffee", "coffee"),
    ("a motorcycle", "motorcycle"),
]


@pytest.mark.parametrize(("request_text", "wanted"), REQUESTS)
def test_a_written_request_finds_the_picture(
    embedded: Catalogue, request_text: str, wanted: str
) -> None:
    assert embedded.rank(request_text, wanted) <= 3


@pytest.mark.parametrize(("request_text", "wanted"), REQUESTS)
def test_a_spoken_request_finds_the_picture(
    embedded: Catalogue, request_text: str, wanted: str
) -> None:
    heard = listen(Speaker().say(f"show me {request_text}"))
    assert embedded.rank(heard, wanted) <= 3


def test_class_names_serve_where_pairs_are_few(embedded: Catalogue) -> None:
    metrics = embedded.trained.metrics
    assert embedded.trained.kind == "conse"
    assert metrics["recall_low"] > metrics["chance"]
    assert metrics["over_chance"] >= 2


@pytest.mark.skipif(not stamps.FOLDER.is_dir(), reason="the stamps are not installed")
@pytest.mark.parametrize("file", ["pipeline.yaml", "pipeline-next.yaml"])
def test_a_map_learned_on_stamps_finds_held_out_pictures(file: str, tmp_path: Path) -> None:
    build_stamps(tmp_path, limit=1000)
    trained = catalogue(tmp_path, file).trained
    assert (trained.kind, trained.recall.k) == ("ridge", 10)
    assert trained.recall.queries > 120
    assert trained.metrics["recall_low"] > 0.4
    assert trained.metrics["over_chance"] > 5
