"""Two releases that share an encoder meet at one shelf."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from infra.keys.file import FileSigner, TrustedKeys
from infra.objects.folder import FolderStore
from services.engines.host import this_host
from services.engines.shelf import Description, Shelf
from services.engines.specs import specify
from tests.services.engines.models import IMAGE, IMAGE_PROFILES
from validators.contracts.digest import Digest, digest_bytes
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import (
    EngineManifest,
    EngineState,
    HostIdentity,
    Precision,
)
from validators.contracts.errors import Conflict
from validators.contracts.tensors import TensorSpec

HOST = this_host()


class OvertakenStore(FolderStore):
    """A store in which another release moves each reference just before we do, once."""

    overtake: Callable[[], object] | None = None

    def set_reference(self, name: str, to: Digest, *, expected: Digest | None) -> None:
        other, self.overtake = self.overtake, None
        if other is not None:
            other()
        super().set_reference(name, to, expected=expected)


class Two:
    """Ours is overtaken; theirs is on the same folder with the same key."""

    def __init__(self, root: Path) -> None:
        key = Ed25519PrivateKey.generate()
        self.store = OvertakenStore(root)
        signer, verifier = FileSigner(key), TrustedKeys([key.public_key()])
        self.ours = Shelf(self.store, signer, verifier)
        self.theirs = Shelf(FolderStore(root), signer, verifier)

    def build(self) -> EngineManifest:
        onnx, engine = self.store.put(b"onnx"), self.store.put(b"engine")
        spec = specify(IMAGE, onnx, "onnxruntime", Precision.FP32, IMAGE_PROFILES)
        manifest = EngineManifest(
            spec.key, spec, engine, 6, EngineState.BUILT, self.store.put(b"log"), (),
            inputs=IMAGE.inputs, outputs=IMAGE.outputs,
        )  # fmt: skip
        return self.ours.keep_built(manifest, Description.of(IMAGE, spec)).manifest


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path / "objects")


def verified(built: EngineManifest, parity: bytes, host: HostIdentity = HOST) -> EngineManifest:
    return dataclasses.replace(
        built, state=EngineState.VERIFIED, parity=digest_bytes(parity), verified_on=host
    )


def ranged(limits: tuple[float, float]) -> EncoderContract:
    inputs: tuple[TensorSpec, ...] = tuple(
        dataclasses.replace(spec, value_range=limits) for spec in IMAGE.inputs
    )
    return dataclasses.replace(IMAGE, inputs=inputs)


def test_who_is_second_to_verify_a_build_takes_what_the_first_verified(two: Two) -> None:
    built = two.build()
    theirs = verified(built, b"theirs")
    two.store.overtake = lambda: two.theirs.keep_verified(theirs, HOST)
    kept = two.ours.keep_verified(verified(built, b"ours"), HOST)
    assert kept.manifest == theirs
    assert kept.cached


@pytest.mark.parametrize(
    "change",
    [{"engine": digest_bytes(b"other")}, {"state": EngineState.BUILT}, {"inputs": ()}],
    ids=lambda change: next(iter(change)),
)
def test_what_the_first_verified_has_to_be_exactly_this_build(
    two: Two, change: dict[str, object]
) -> None:
    built = two.build()
    theirs = dataclasses.replace(verified(built, b"theirs"), **change)  # type: ignore[arg-type]
    two.store.overtake = lambda: two.theirs.keep_verified(theirs, HOST)
    with pytest.raises(Conflict):
        two.ours.keep_verified(verified(built, b"ours"), HOST)


def test_who_is_second_to_renew_a_manifest_takes_the_renewed_one(two: Two) -> None:
    spec = two.build().spec
    about = Description.of(ranged((-2.0, 2.0)), spec)
    two.store.overtake = lambda: two.theirs.built(spec, about)
    found = two.ours.built(spec, about)
    assert found is not None
    assert found.manifest.inputs == about.inputs


def test_a_manifest_renewed_for_another_contract_is_not_taken(two: Two) -> None:
    spec = two.build().spec
    other, about = (Description.of(ranged(r), spec) for r in ((-3.0, 3.0), (-2.0, 2.0)))
    two.store.overtake = lambda: two.theirs.built(spec, other)
    with pytest.raises(Conflict):
        two.ours.built(spec, about)
