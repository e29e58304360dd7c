"""A bundle whose engine is a real one: built, verified and sealed as a release does it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from infra.keys.file import FileSigner, open_verifier
from infra.objects.folder import FolderStore
from services.engines.specs import specify
from services.engines.workshop import EngineWorkshop
from tests.services.engines.onnx_models import image_model
from tests.services.engines.onnx_models import save as save_onnx
from tests.services.gateway.toy import COLOURS, SERVICE
from validators.contracts.bundle import (
    BUNDLE_FORMAT,
    Bundle,
    BundledAsset,
    BundledEncoder,
    BundledEngine,
)
from validators.contracts.digest import Digest, canonical_json, digest_bytes, hex_of
from validators.contracts.encoder import EncoderContract, PreprocessSpec, encoder_fingerprint
from validators.contracts.engine import (
    EngineSpec,
    EngineState,
    Precision,
    ShapeProfile,
    ShapeRange,
)
from validators.contracts.origin import VectorOrigin
from validators.contracts.pipeline import (
    AdapterEntry,
    Answer,
    Branch,
    EncoderSource,
    Fusion,
    SourceKind,
)
from validators.contracts.slo import Slo, SloClass
from validators.contracts.tensors import DType, Meaning, TensorSpec
from validators.watch.plan import ASSET, RecordingPlan

CONTRACT = EncoderContract(
    name="image",
    version="1.0.0",
    modality="image",
    inputs=(TensorSpec("pixels", DType.FP32, ("batch", 3, 16, 16), Meaning.PIXELS,
                       value_range=(0.0, 1.0)),),
    outputs=(
        TensorSpec("features", DType.FP32, ("batch", 8), Meaning.GLOBAL_EMBEDDING),
        TensorSpec("logits", DType.FP32, ("batch", 4), Meaning.LOGITS),
    ),
    preprocess=PreprocessSpec(
        "image",
        (("fit", "stretch"), ("mean", 0), ("scale", 255), ("size", 16), ("tensor", "pixels")),
    ),
)  # fmt: skip
PROFILES = (ShapeProfile((ShapeRange("pixels", (1, 3, 16, 16), (1, 3, 16, 16), (4, 3, 16, 16)),)),)
# Red, green and blue each light their own feature, so that the answer is known in advance.
WEIGHT = np.eye(3, 8, dtype=np.float32)


@dataclasses.dataclass(frozen=True)
class Real:
    path: Path
    digest: Digest
    trusted: Path
    folder: Path
    workshop: EngineWorkshop
    spec: EngineSpec

    def enlarged(self, batch: int) -> tuple[Path, Path]:
        """Sealed manifest and file of an engine that also takes batches up to `batch`; verified."""
        shape = (batch, 3, 16, 16)
        larger = ShapeProfile((ShapeRange("pixels", (1, 3, 16, 16), shape, shape),))
        spec = dataclasses.replace(self.spec, profiles=(*self.spec.profiles, larger))
        built = self.workshop.obtain(spec, spec.onnx, CONTRACT)
        source = EncoderSource(SourceKind.ONNX, "model.onnx")
        verified = self.workshop.verify(built, CONTRACT, source, self.folder).engine
        assert verified is not None
        manifest, engine = self.folder / f"{batch}.json", self.folder / f"{batch}.engine"
        manifest.write_bytes(verified.sealed)
        FolderStore(self.folder / "store").fetch(verified.manifest.engine, engine)
        return manifest, engine


def make_real(folder: Path, backend: str, *, top_k: int = 1) -> Real:
    """Build, verify, sign and materialise below `folder`."""
    (folder / "keys").mkdir(parents=True, exist_ok=True)
    signer = FileSigner.create_or_open(folder / "keys" / "release.pem")
    trusted = folder / "trusted"
    trusted.mkdir(exist_ok=True)
    signer.publish(trusted)
    store = FolderStore(folder / "store")
    model = save_onnx(image_model(weight=WEIGHT), folder / "model.onnx")
    onnx = store.put_file(model)
    workshop = EngineWorkshop(
        store, signer, open_verifier(trusted), folder / "locks", folder / "work"
    )
    spec = specify(CONTRACT, onnx, backend, Precision.FP32, PROFILES)
    built = workshop.obtain(spec, onnx, CONTRACT)
    source = EncoderSource(SourceKind.ONNX, model.name)
    verified = workshop.verify(built, CONTRACT, source, folder).engine
    assert verified is not None
    manifest = verified.manifest
    engine = BundledEngine(
        "image", backend, spec.target, Precision.FP32, EngineState.VERIFIED, True,
        manifest.key, manifest.engine, verified.sealed_digest,
    )  # fmt: skip
    assets = {
        "adapter-image.safetensors": save(
            {"weight": np.eye(8, 3, dtype=np.float32), "bias": np.zeros(3, np.float32)}
        ),
        "catalogue.safetensors": save({"vectors": np.eye(3, dtype=np.float32)}),
        "catalogue.json": json.dumps([{"id": c, "caption": c} for c in COLOURS]).encode(),
        "catalogue-origins.json": canonical_json(
            {"image": VectorOrigin(encoder_fingerprint(CONTRACT, onnx), manifest.engine)}
        ),
        ASSET: canonical_json(RecordingPlan(share=1.0)),  # heeded where a gateway is told to
    }
    nothing = digest_bytes(b"")
    bundle = Bundle(
        format=BUNDLE_FORMAT,
        service=SERVICE,
        slo=Slo(SloClass.INTERACTIVE, 60_000, 250, 4096, 0.25, 0.01),
        encoders=(BundledEncoder(CONTRACT, onnx, encoder_fingerprint(CONTRACT, onnx)),),
        branches=(Branch("image", "image", AdapterEntry("ridge", "features", "rgb")),),
        fusion=Fusion("all"),
        answer=Answer("retrieval", top_k),
        engines=(engine,),
        assets=tuple(BundledAsset(n, store.put(data), len(data)) for n, data in assets.items()),
        dataset=nothing,
        certificate=nothing,
        verdicts=nothing,
    )
    target = folder / hex_of(bundle.digest)[:12]
    (target / "objects").mkdir(parents=True)
    for digest in bundle.objects():
        store.fetch(digest, target / "objects" / hex_of(digest))
    (target / "bundle.json").write_bytes(bundle.document())
    (target / "bundle.sig.json").write_bytes(canonical_json(signer.sign(bundle.document())))
    return Real(target, bundle.digest, trusted, folder, workshop, spec)
