"""A released service in a state folder, made in a second: one picture encoder, a real engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from flows.home import Home
from flows.release.bundle import keep, revision_of
from flows.release.places import remember_place
from flows.release.register import keep_record
from flows.release.values import ReleaseRecord
from flows.workspace import Workspace
from services.engines.specs import specify
from tests.services.engines.onnx_models import image_model
from tests.services.engines.onnx_models import save as save_onnx
from validators.contracts.builds import ShapeRequest
from validators.contracts.bundle import (
    BUNDLE_FORMAT,
    Bundle,
    BundledAsset,
    BundledEncoder,
    BundledEngine,
)
from validators.contracts.deployment import Revision
from validators.contracts.digest import Digest, canonical_json
from validators.contracts.encoder import EncoderContract, PreprocessSpec, encoder_fingerprint
from validators.contracts.engine import EngineState, Precision, ShapeProfile, ShapeRange
from validators.contracts.modality import Modality
from validators.contracts.pipeline import (
    AdapterEntry,
    Answer,
    BackendPlan,
    Branch,
    DataSource,
    Deployment,
    EncoderEntry,
    EncoderSource,
    Fusion,
    GateSettings,
    Pipeline,
    SourceKind,
)
from validators.contracts.slo import Slo, SloClass
from validators.contracts.tensors import DType, Meaning, TensorSpec

SERVICE = "colours"
BACKEND = "onnxruntime"
CONTRACT = EncoderContract(
    name="image",
    version="1.0.0",
    modality="image",
    inputs=(
        TensorSpec(
            "pixels", DType.FP32, ("batch", 3, 16, 16), Meaning.PIXELS, value_range=(0.0, 1.0)
        ),
    ),
    outputs=(
        TensorSpec("features", DType.FP32, ("batch", 8), Meaning.GLOBAL_EMBEDDING, space="rgb"),
        TensorSpec("logits", DType.FP32, ("batch", 4), Meaning.LOGITS),
    ),
    preprocess=PreprocessSpec(
        "image",
        (("fit", "stretch"), ("mean", 0), ("scale", 255), ("size", 16), ("tensor", "pixels")),
    ),
)
PROFILES = (ShapeProfile((ShapeRange("pixels", (1, 3, 16, 16), (1, 3, 16, 16), (4, 3, 16, 16)),)),)
# Red, green and blue each light their own feature, so that the answer is known in advance.
WEIGHT = np.eye(3, 8, dtype=np.float32)
SLO = Slo(SloClass.INTERACTIVE, 60_000, 250, 4096, 0.25, 0.01)
SOURCE = EncoderSource(SourceKind.ONNX, "model.onnx")
ENTRY = EncoderEntry(CONTRACT, SOURCE, Precision.FP32, PROFILES)


@dataclass(frozen=True)
class Shop:
    """The workspace, and the version that was released into it."""

    workspace: Workspace
    bundle: Bundle

    @property
    def revision(self) -> Revision:
        return revision_of(self.workspace, self.bundle)

    @property
    def engine(self) -> BundledEngine:
        return self.bundle.deployed_engine("image")

    def request(self, batch: int = 6, **changes: object) -> ShapeRequest:
        asked = ShapeRequest(
            SERVICE, self.bundle.digest, "image", self.engine.key, (("batch", batch),)
        )
        return replace(asked, **changes)  # type: ignore[arg-type]


def open_shop(
    home: Path, entry: EncoderEntry = ENTRY, *, gates: GateSettings | None = None
) -> Shop:
    """Release the toy service into a state folder, without the gates that judge its data."""
    workspace = Workspace(Home(home))
    store = workspace.store
    sources = home / "project"
    sources.mkdir(parents=True, exist_ok=True)
    onnx = store.put_file(save_onnx(image_model(weight=WEIGHT), sources / "model.onnx"))
    bundle = Bundle(
        format=BUNDLE_FORMAT,
        service=SERVICE,
        slo=SLO,
        encoders=(BundledEncoder(CONTRACT, onnx, encoder_fingerprint(CONTRACT, onnx)),),
        branches=(Branch("image", "image", AdapterEntry("ridge", "features", "rgb")),),
        fusion=Fusion("all"),
        answer=Answer("embedding"),
        engines=(_engine(workspace, onnx, entry, sources),),
        assets=_assets(workspace),
        dataset=store.put(b"data"),
        certificate=store.put(b"certificate"),
        verdicts=store.put(b"[]"),
    )
    keep(workspace, bundle)
    remember_place(workspace, bundle.digest, sources)
    pipeline = Pipeline(
        SERVICE, SLO, (Modality("image"),), (entry,), bundle.branches, bundle.fusion,
        bundle.answer, DataSource("folder", "data"), (BackendPlan(BACKEND, deploy=True),),
        gates or GateSettings(), Deployment(),
    )  # fmt: skip
    nothing = store.put(b"nothing")
    keep_record(
        workspace,
        ReleaseRecord(
            bundle.digest, nothing, None, store.put(canonical_json(pipeline)), bundle.dataset,
            nothing, nothing, nothing, bundle.certificate, bundle.verdicts,
        ),
    )  # fmt: skip
    return Shop(workspace, bundle)


def _engine(workspace: Workspace, onnx: Digest, entry: EncoderEntry, base: Path) -> BundledEngine:
    spec = specify(CONTRACT, onnx, BACKEND, Precision.FP32, PROFILES)
    built = workspace.workshop.obtain(spec, onnx, CONTRACT)
    verified = workspace.workshop.verify(built, CONTRACT, SOURCE, base).engine
    assert verified is not None
    manifest = verified.manifest
    return BundledEngine(
        "image", BACKEND, spec.target, Precision.FP32, EngineState.VERIFIED, True,
        manifest.key, manifest.engine, verified.sealed_digest,
    )  # fmt: skip


def _assets(workspace: Workspace) -> tuple[BundledAsset, ...]:
    files = {
        "adapter-image.safetensors": save(
            {"weight": np.eye(8, 3, dtype=np.float32), "bias": np.zeros(3, np.float32)}
        ),
    }
    return tuple(
        BundledAsset(name, workspace.store.put(data), len(data)) for name, data in files.items()
    )
