"""The reference encoders as plain callables, with the preprocessing that the pipeline declares."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from flows.examples.storefront import encoders
from flows.examples.storefront.packages import package_file
from services.preprocess import Preprocessor, make_preprocessor, make_transcriber
from services.preprocess.transcript import Transcriber
from validators.contracts.digest import Digest
from validators.contracts.pipeline import EncoderEntry, Pipeline
from validators.contracts.pipeline_file import parse_pipeline

FOLDER = Path(encoders.__file__).parent
_DIGEST = Digest("sha256:" + "0" * 64)


@functools.cache
def pipeline(name: str = "pipeline.yaml") -> Pipeline:
    return parse_pipeline((FOLDER / name).read_text("utf-8"), path=name)


@functools.cache
def module(factory: str) -> nn.Module:
    torch.set_num_threads(1)
    made: nn.Module = getattr(encoders, factory)()
    return made


class TorchEngine:
    """A torch module behind the interface of a loaded engine."""

    manifest: Any = None

    def __init__(self, entry: EncoderEntry) -> None:
        self.entry = entry
        self.module = module(entry.source.location.partition(":")[2])

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        contract = self.entry.contract
        given = [torch.from_numpy(np.ascontiguousarray(feeds[i.name])) for i in contract.inputs]
        with torch.inference_mode():
            answers = self.module(*given)
        answers = answers if isinstance(answers, tuple) else (answers,)
        return {o.name: a.numpy() for o, a in zip(contract.outputs, answers, strict=True)}

    def close(self) -> None:
        return


def with_asset(entry: EncoderEntry) -> tuple[Any, bytes]:
    """The entry's contract with its tokenizer's digest filled in, and the tokenizer."""
    files = dict(entry.asset_files)
    if "tokenizer" not in files:
        return entry.contract, b""
    package, _, path = files["tokenizer"].partition(":")
    data = package_file(package, *path.split("/")).read_bytes()
    spec = dataclasses.replace(entry.contract.preprocess, assets=(("tokenizer", _DIGEST),))
    return dataclasses.replace(entry.contract, preprocess=spec), data


def preprocessor(entry: EncoderEntry) -> Preprocessor:
    contract, asset = with_asset(entry)
    return make_preprocessor(contract.preprocess, lambda _: asset)


def transcriber(entry: EncoderEntry) -> Transcriber:
    contract, asset = with_asset(entry)
    return make_transcriber(contract, TorchEngine(entry), lambda _: asset)


def encode(name: str, raws: Sequence[Any], of: Pipeline | None = None) -> dict[str, Any]:
    """The outputs of one encoder for many raw inputs, stacked."""
    entry = (of or pipeline()).encoder(name)
    engine, preprocess = TorchEngine(entry), preprocessor(entry)
    rows = [engine.run(preprocess(raw)) for raw in raws]
    return {key: np.concatenate([row[key] for row in rows]) for key in rows[0]}


def listen(recording: bytes) -> str:
    """What the speech branch makes of a recording."""
    features = encode("speech", [recording])
    return transcriber(pipeline().encoder("speech_decoder"))(features, lambda: None)
