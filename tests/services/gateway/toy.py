"""A small service whose answers can be told in advance: pictures, words and tones of a colour.

Its common space is (red, green, blue); its engines are NumPy functions, its bundle is a real one:
signed, digest by digest, with a tokenizer, an adapter file and a catalogue.
"""

from __future__ import annotations

import asyncio
import dataclasses
import io
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import soundfile
from PIL import Image
from safetensors.numpy import save
from tokenizers import Tokenizer, models, pre_tokenizers

from infra.keys.file import FileSigner, open_verifier
from services.engines.profiles.bounds import shape_profile
from services.fusion.adapters import load_adapter
from services.gateway.encoders import Loaders
from services.preprocess import make_preprocessor
from services.preprocess.transcript import make_transcriber
from validators.contracts.bundle import (
    BUNDLE_FORMAT,
    Bundle,
    BundledAsset,
    BundledEncoder,
    BundledEngine,
)
from validators.contracts.digest import Digest, canonical_json, digest_bytes, hex_of
from validators.contracts.documents import load
from validators.contracts.encoder import EncoderContract, PreprocessSpec, encoder_fingerprint
from validators.contracts.engine import (
    EngineManifest,
    EngineSpec,
    EngineState,
    HostIdentity,
    Precision,
)
from validators.contracts.origin import VectorOrigin
from validators.contracts.pipeline import AdapterEntry, Answer, Branch, Fusion
from validators.contracts.ports import RunningEngine, Tensors
from validators.contracts.slo import Slo, SloClass
from validators.contracts.tensors import DType, Meaning, TensorSpec
from validators.watch.plan import RecordingPlan

SERVICE = "colours"
COLOURS = ("red", "green", "blue")
SPECIALS = ("<|startoftranscript|>", "<|notimestamps|>", "<|endoftext|>")
HOST = HostIdentity("cpu", "anywhere")
LEAST = {"batch": 1, "tokens": 1}
MOST = {"batch": 8, "tokens": 16}
"""Corners of every engine's one profile."""

Outputs = dict[str, npt.NDArray[Any]]
Function = Callable[[Tensors], Outputs]


def make_tokenizer() -> bytes:
    vocabulary = {word: index for index, word in enumerate(("[UNK]", *COLOURS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(list(SPECIALS))
    return tokenizer.to_str().encode()


TOKENIZER = make_tokenizer()


def _spec(name: str, dtype: DType, shape: tuple[int | str, ...], meaning: Meaning) -> TensorSpec:
    return TensorSpec(name, dtype, shape, meaning)


def _preprocess(kind: str, **options: str | int) -> PreprocessSpec:
    assets = () if kind in ("image", "log_mel") else (("tokenizer", digest_bytes(TOKENIZER)),)
    return PreprocessSpec(kind, tuple(sorted(options.items())), assets)


CONTRACTS: tuple[EncoderContract, ...] = (
    EncoderContract(
        "image", "1.0.0", "image",
        (_spec("pixels", DType.FP32, ("batch", 3, 8, 8), Meaning.PIXELS),),
        (_spec("features", DType.FP32, ("batch", 3), Meaning.GLOBAL_EMBEDDING),),
        _preprocess("image", tensor="pixels", size=8, mean=0, scale=255, fit="stretch"),
    ),
    EncoderContract(
        "text", "1.0.0", "text",
        (
            _spec("input_ids", DType.INT64, ("batch", "tokens"), Meaning.TOKEN_IDS),
            _spec("attention_mask", DType.INT64, ("batch", "tokens"), Meaning.ATTENTION_MASK),
        ),
        (_spec("embedding", DType.FP32, ("batch", 3), Meaning.GLOBAL_EMBEDDING),),
        _preprocess("wordpiece", max_tokens=16),
    ),
    EncoderContract(
        "speech", "1.0.0", "audio",
        (_spec("mel", DType.FP32, ("batch", 9, 100), Meaning.MEL),),
        (_spec("frames", DType.FP32, ("batch", 9), Meaning.FRAME_FEATURES),),
        _preprocess("log_mel", tensor="mel", mels=9, seconds=1, longer="cut"),
    ),
    EncoderContract(
        "speech_decoder", "1.0.0", "audio",
        (
            _spec("tokens", DType.INT64, ("batch", "tokens"), Meaning.TOKEN_IDS),
            _spec("frames", DType.FP32, ("batch", 9), Meaning.FRAME_FEATURES),
        ),
        (_spec("logits", DType.FP32, ("batch", 7), Meaning.LOGITS),),
        _preprocess("transcript", max_tokens=8),
    ),
)  # fmt: skip


def run_image(feeds: Tensors) -> Outputs:
    return {"features": feeds["pixels"].mean(axis=(2, 3), dtype=np.float32)}


def run_text(feeds: Tensors) -> Outputs:
    counts = [[float((row == 1 + c).sum()) for c in range(3)] for row in feeds["input_ids"]]
    return {"embedding": np.array(counts, np.float32) + np.float32(1e-3)}


def run_speech(feeds: Tensors) -> Outputs:
    return {"frames": feeds["mel"].mean(axis=2, dtype=np.float32)}


def run_decoder(feeds: Tensors) -> Outputs:
    logits = np.zeros((1, 7), np.float32)
    spoken = feeds["tokens"].shape[1] > 2
    logits[0, 6 if spoken else 1 + int(feeds["frames"][0].argmax()) // 3] = 1.0
    return {"logits": logits}


FUNCTIONS: dict[str, Function] = {
    "image": run_image,
    "text": run_text,
    "speech": run_speech,
    "speech_decoder": run_decoder,
}


class FunctionEngine:
    """A NumPy function as a running engine."""

    def __init__(self, manifest: EngineManifest, function: Function) -> None:
        self._manifest = manifest
        self._function = function
        self.closed = False

    @property
    def manifest(self) -> EngineManifest:
        return self._manifest

    def run(self, feeds: Tensors) -> Outputs:
        assert not self.closed
        return self._function(feeds)

    def close(self) -> None:
        self.closed = True


class Gate:
    """An engine that waits to be let on."""

    def __init__(self, function: Function) -> None:
        self.open = threading.Event()
        self.calls = 0
        self._entered = threading.Event()
        self._function = function

    def __call__(self, feeds: Tensors) -> Outputs:
        self.calls += 1
        self._entered.set()
        assert self.open.wait(60)
        return self._function(feeds)

    async def reached(self) -> None:
        """Returns when a worker stands before it."""
        assert await asyncio.to_thread(self._entered.wait, 60)


DEFAULT_BRANCHES: tuple[Branch, ...] = (
    Branch("image", "image", AdapterEntry("ridge", "features", "rgb")),
    Branch("text", "text", AdapterEntry("identity", "embedding", "rgb")),
    Branch("audio", "speech", decoder="speech_decoder", then="text"),
)


@dataclasses.dataclass(frozen=True)
class Toy:
    """A materialised bundle and what it takes to load it."""

    path: Path
    digest: Digest
    signer: FileSigner
    trusted: Path

    def loaders(self, functions: Mapping[str, Function] | None = None, **parts: Any) -> Loaders:
        """Real parts around engines that are functions, some of them put in by the test."""
        chosen = {**FUNCTIONS, **(functions or {})}

        def load_function(sealed: bytes, path: Path) -> RunningEngine:
            manifest = load(EngineManifest, sealed)
            return FunctionEngine(manifest, chosen[path.read_text()])

        loaders = Loaders(
            open_verifier(self.trusted),
            load_function,
            make_preprocessor,
            load_adapter,
            make_transcriber,
            warm=lambda engine: None,  # a test that counts or stops calls wants its own alone
        )
        return dataclasses.replace(loaders, **parts)


def make_toy(folder: Path, **changes: Any) -> Toy:
    """A bundle of the toy service, with fields of the document changed."""
    keys = folder / "keys"
    keys.mkdir(parents=True, exist_ok=True)
    signer = FileSigner.create_or_open(keys / "release.pem")
    trusted = folder / "trusted"
    trusted.mkdir(exist_ok=True)
    signer.publish(trusted)
    objects: dict[Digest, bytes] = {}

    def keep(data: bytes) -> Digest:
        objects[digest_bytes(data)] = data
        return digest_bytes(data)

    keep(TOKENIZER)
    bundle = dataclasses.replace(
        _bundle(keep, changes.get("branches", DEFAULT_BRANCHES), changes.pop("plan", None)),
        **changes,
    )
    target = folder / hex_of(bundle.digest)[:12]
    (target / "objects").mkdir(parents=True, exist_ok=True)
    for digest, data in objects.items():
        (target / "objects" / hex_of(digest)).write_bytes(data)
    document = bundle.document()
    (target / "bundle.json").write_bytes(document)
    (target / "bundle.sig.json").write_bytes(canonical_json(signer.sign(document)))
    return Toy(target, bundle.digest, signer, trusted)


def _bundle(
    keep: Callable[[bytes], Digest], branches: tuple[Branch, ...], plan: RecordingPlan | None
) -> Bundle:
    engines, encoders = [], []
    made: dict[str, VectorOrigin] = {}
    for contract in CONTRACTS:
        onnx = digest_bytes(contract.name.encode())
        profiles = (shape_profile(contract.inputs, LEAST, LEAST, MOST),)
        spec = EngineSpec(contract.name, onnx, "numpy", "2", Precision.FP32, profiles, HOST)
        engine = keep(contract.name.encode())
        manifest = EngineManifest(
            spec.key, spec, engine, len(contract.name), EngineState.VERIFIED,
            digest_bytes(b"log"), (), inputs=contract.inputs, outputs=contract.outputs,
        )  # fmt: skip
        made[contract.name] = VectorOrigin(encoder_fingerprint(contract, onnx), engine)
        engines.append(
            BundledEngine(
                contract.name, "numpy", HOST, Precision.FP32, EngineState.VERIFIED, True,
                spec.key, engine, keep(canonical_json(manifest)),
            )
        )  # fmt: skip
        encoders.append(BundledEncoder(contract, onnx, encoder_fingerprint(contract, onnx)))
    assets = {
        "adapter-image.safetensors": save(
            {"weight": np.eye(3, dtype=np.float32), "bias": np.zeros(3, np.float32)}
        ),
        "catalogue.safetensors": save({"vectors": np.eye(3, dtype=np.float32)}),
        "catalogue.json": json.dumps(
            [{"id": colour, "caption": f"something {colour}"} for colour in COLOURS]
        ).encode(),
        "catalogue-origins.json": canonical_json(
            {branch.modality: made[branch.encoder] for branch in branches if branch.adapter}
        ),
    }
    if plan is not None:
        assets["recording.json"] = canonical_json(plan)
    nothing = digest_bytes(b"")
    return Bundle(
        format=BUNDLE_FORMAT,
        service=SERVICE,
        slo=Slo(SloClass.INTERACTIVE, 30_000, 250, 4096, 0.25, 0.01),
        encoders=tuple(encoders),
        branches=DEFAULT_BRANCHES,
        fusion=Fusion("all"),
        answer=Answer("retrieval", 2),
        engines=tuple(engines),
        assets=tuple(BundledAsset(n, keep(data), len(data)) for n, data in assets.items()),
        dataset=nothing,
        certificate=nothing,
        verdicts=nothing,
    )


def picture(colour: str, file_format: str = "PNG", side: int = 16) -> bytes:
    """A file of one colour."""
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), {"green": "lime"}.get(colour, colour)).save(buffer, file_format)
    return buffer.getvalue()


def tone(colour: str, seconds: float = 1.0, rate_hz: int = 16_000) -> npt.NDArray[np.float32]:
    """Samples that the toy hears as the word."""
    pitch_hz = {"red": 200.0, "green": 1700.0, "blue": 6500.0}[colour]
    time_s = np.arange(int(seconds * rate_hz)) / rate_hz
    return (0.5 * np.sin(2 * np.pi * pitch_hz * time_s)).astype(np.float32)


def pcm16(samples: npt.NDArray[np.float32]) -> bytes:
    return (samples * 32767).astype("<i2").tobytes()


def wav(samples: npt.NDArray[np.float32], rate_hz: int = 16_000, channels: int = 1) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.stack([samples] * channels, axis=1), rate_hz, format="WAV")
    return buffer.getvalue()
