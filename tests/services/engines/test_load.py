from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from services.engines.canary import check_canary, record_canary
from services.engines.load import load_engine
from services.engines.manifest import SealedManifest, open_manifest, seal_manifest
from services.engines.shelf import ObtainedEngine
from services.engines.specs import specify
from tests.services.engines.conftest import Yard, make_yard
from tests.services.engines.models import IMAGE, IMAGE_PROFILES, image_entry
from validators.contracts.digest import canonical_json, digest_bytes
from validators.contracts.documents import load
from validators.contracts.engine import EngineManifest, EngineState, HostIdentity, Precision
from validators.contracts.errors import NotFound, Refused


@dataclasses.dataclass
class Made:
    yard: Yard
    engine: ObtainedEngine
    path: Path

    @property
    def manifest(self) -> EngineManifest:
        return self.engine.manifest

    def resealed(self, **changes: object) -> bytes:
        return seal_manifest(dataclasses.replace(self.manifest, **changes), self.yard.signer)


@pytest.fixture(scope="module", params=["openvino", "onnxruntime"])
def made(
    request: pytest.FixtureRequest,
    image_onnx: Path,
    factories: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Made:
    yard = make_yard(tmp_path_factory.mktemp("load"))
    digest = yard.store.put_file(image_onnx)
    spec = specify(IMAGE, digest, request.param, Precision.FP32, IMAGE_PROFILES)
    built = yard.workshop.obtain(spec, digest, IMAGE)
    verified = yard.workshop.verify(built, IMAGE, image_entry().source, factories)
    assert verified.engine is not None
    path = yard.root / "engine"
    yard.store.fetch(verified.engine.manifest.engine, path)
    return Made(yard, verified.engine, path)


def _refusal(made: Made, sealed: bytes, path: Path | None = None, **options: object) -> str:
    with pytest.raises(Refused) as caught:
        load_engine(sealed, path or made.path, verifier=made.yard.verifier, **options)  # type: ignore[arg-type]
    assert caught.value.remedy
    return caught.value.what


def test_what_was_verified_here_loads_and_runs(made: Made) -> None:
    engine = load_engine(
        made.engine.sealed, made.path, verifier=made.yard.verifier, engine_key=made.manifest.key
    )
    answer = engine.run({"pixels": np.ones((3, 3, 16, 16), np.float32)})
    assert {name: array.shape for name, array in answer.items()} == {
        "features": (3, 8), "logits": (3, 4),
    }  # fmt: skip
    engine.close()


@pytest.mark.parametrize("where", [0.1, 0.5, 0.9])
def test_a_changed_byte_is_refused(made: Made, tmp_path: Path, where: float) -> None:
    data = bytearray(made.path.read_bytes())
    data[int(len(data) * where)] ^= 1
    (tmp_path / "engine").write_bytes(data)
    assert "it was changed" in _refusal(made, made.engine.sealed, tmp_path / "engine")


def test_an_engine_of_another_size_is_refused(made: Made, tmp_path: Path) -> None:
    (tmp_path / "engine").write_bytes(made.path.read_bytes()[:-1])
    assert "bytes, its manifest says" in _refusal(made, made.engine.sealed, tmp_path / "engine")


def test_a_missing_engine_file_is_not_found(made: Made, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        load_engine(made.engine.sealed, tmp_path / "absent", verifier=made.yard.verifier)


def test_another_hosts_instruction_sets_are_refused(made: Made) -> None:
    lesser = HostIdentity("cpu", "x86_64-avx2", ("avx", "avx2"))
    assert "another host" in _refusal(made, made.engine.sealed, host=lesser)


def test_an_engine_verified_on_another_host_is_refused(made: Made) -> None:
    elsewhere = HostIdentity("cpu", "x86_64-amx_bf16", ("amx_bf16", "avx", "avx2"))
    assert "another host" in _refusal(made, made.resealed(verified_on=elsewhere))


def test_another_backend_version_is_refused(made: Made) -> None:
    spec = dataclasses.replace(made.manifest.spec, backend_version="1999.1")
    assert "was built by" in _refusal(made, made.resealed(spec=spec, key=spec.key))


def test_a_manifest_of_another_engine_is_refused(made: Made) -> None:
    other = digest_bytes(b"another key")
    assert "of another engine" in _refusal(made, made.engine.sealed, engine_key=other)
    assert "another engine's key" in _refusal(made, made.resealed(key=other))
    assert "is another engine" in _refusal(made, made.resealed(engine=digest_bytes(b"x")))


def test_an_engine_that_was_only_built_is_refused(made: Made) -> None:
    assert "BUILT, not VERIFIED" in _refusal(made, made.resealed(state=EngineState.BUILT))


def test_a_tampered_manifest_is_refused(made: Made) -> None:
    sealed = load(SealedManifest, made.engine.sealed)
    forged = dataclasses.replace(sealed.manifest, size_bytes=1)
    _refusal(made, canonical_json(SealedManifest(forged, sealed.signature)))


def test_a_manifest_signed_by_a_stranger_is_refused(made: Made, tmp_path: Path) -> None:
    stranger = make_yard(tmp_path)
    _refusal(made, seal_manifest(made.manifest, stranger.signer))


@pytest.mark.parametrize("data", [b"", b"{}", b"\x00\xff", b'{"manifest": 1, "signature": 2}'])
def test_what_is_not_a_manifest_is_refused(made: Made, data: bytes) -> None:
    _refusal(made, data)


def test_an_unsigned_manifest_is_refused(made: Made) -> None:
    _refusal(made, canonical_json(made.manifest))


def test_a_sealed_manifest_opens_to_what_was_sealed(made: Made) -> None:
    assert open_manifest(made.engine.sealed, made.yard.verifier) == made.manifest


def test_a_canary_that_answers_something_else_is_refused(made: Made) -> None:
    first = made.manifest.canary_outputs[0]
    moved = tuple(value + first.peak / 2 for value in first.samples)
    changed = (dataclasses.replace(first, samples=moved), *made.manifest.canary_outputs[1:])
    assert "other values" in _refusal(made, made.resealed(canary_outputs=changed))
    shape = (dataclasses.replace(first, shape=(7, 8)), *made.manifest.canary_outputs[1:])
    assert "has shape" in _refusal(made, made.resealed(canary_outputs=shape))
    assert "no canary answer" in _refusal(made, made.resealed(canary_outputs=()))
    assert "canary's inputs" in _refusal(made, made.resealed(canary_inputs=None))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_canary_that_is_not_finite_is_refused(made: Made, value: float) -> None:
    broken = {"features": np.full((2, 8), value), "logits": np.zeros((2, 4))}
    with pytest.raises(Refused, match="NaN or infinity"):
        record_canary(broken)
    with pytest.raises(Refused, match="NaN or infinity"):
        check_canary(made.manifest, broken)


def test_more_threads_answer_the_same(made: Made) -> None:
    feeds = {"pixels": np.linspace(-1, 1, 768, dtype=np.float32).reshape(1, 3, 16, 16)}
    answers = []
    for threads in (1, 2):
        engine = load_engine(
            made.engine.sealed, made.path, verifier=made.yard.verifier, threads=threads
        )
        answers.append(engine.run(feeds)["logits"])
        engine.close()
    np.testing.assert_allclose(*answers, rtol=1e-4, atol=1e-6)
