"""A bundle is loaded only as it was signed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.keys.file import FileSigner
from services.gateway.folder import open_folder
from services.gateway.revision import load_revision
from tests.services.gateway.toy import CONTRACTS, DEFAULT_BRANCHES, FunctionEngine, Toy, make_toy
from validators.contracts.bundle import BUNDLE_FORMAT, Bundle
from validators.contracts.digest import canonical_json, digest_bytes, hex_of
from validators.contracts.documents import load
from validators.contracts.engine import EngineManifest, EngineState
from validators.contracts.errors import (
    ModalgateError,
    NotFound,
    Refused,
    Unavailable,
    Unsupported,
)
from validators.contracts.pipeline import AdapterEntry, Answer, Branch


def bundle_of(toy: Toy) -> Bundle:
    return open_folder(toy.path, toy.loaders().verifier).bundle


def test_a_signed_bundle_comes_to_life(toy: Toy) -> None:
    revision = load_revision("r1", toy.path, toy.loaders(), toy.digest)
    assert revision.digest == toy.digest
    assert set(revision.encoders) == {contract.name for contract in CONTRACTS}
    assert set(revision.branches) == {"image", "text", "audio"}
    assert revision.catalogue is not None
    assert revision.catalogue.dimension == 3
    revision.close()
    for item in revision.encoders.values():
        with pytest.raises(Unavailable):
            item.engine.run({})


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def flip_engine(toy: Toy) -> None:
    flip(toy.path / "objects" / hex_of(bundle_of(toy).engines[0].engine))


def flip_manifest(toy: Toy) -> None:
    flip(toy.path / "objects" / hex_of(bundle_of(toy).engines[1].manifest))


def flip_catalogue(toy: Toy) -> None:
    flip(toy.path / "objects" / hex_of(bundle_of(toy).asset("catalogue.safetensors").digest))


def flip_adapter(toy: Toy) -> None:
    flip(toy.path / "objects" / hex_of(bundle_of(toy).asset("adapter-image.safetensors").digest))


def flip_tokenizer(toy: Toy) -> None:
    spec = bundle_of(toy).encoder("text").contract.preprocess
    flip(toy.path / "objects" / hex_of(spec.asset("tokenizer")))


def change_document(toy: Toy) -> None:
    path = toy.path / "bundle.json"
    path.write_bytes(path.read_bytes().replace(b'"top_k":2', b'"top_k":3'))


def sign_by_a_stranger(toy: Toy) -> None:
    stranger = FileSigner.create_or_open(toy.path.parent / "keys" / "stranger.pem")
    document = (toy.path / "bundle.json").read_bytes()
    (toy.path / "bundle.sig.json").write_bytes(canonical_json(stranger.sign(document)))


def write_it_another_way(toy: Toy) -> None:
    document = json.dumps(json.loads((toy.path / "bundle.json").read_bytes())).encode()
    (toy.path / "bundle.json").write_bytes(document)
    (toy.path / "bundle.sig.json").write_bytes(canonical_json(toy.signer.sign(document)))


@pytest.mark.parametrize(
    "tamper",
    [
        flip_engine,
        flip_manifest,
        flip_catalogue,
        flip_adapter,
        flip_tokenizer,
        change_document,
        sign_by_a_stranger,
        write_it_another_way,
    ],
)
def test_whatever_was_changed_is_refused(toy: Toy, tamper: Callable[[Toy], None]) -> None:
    tamper(toy)
    with pytest.raises(Refused):
        load_revision("r1", toy.path, toy.loaders())


@pytest.mark.parametrize("name", ["bundle.json", "bundle.sig.json"])
def test_a_missing_document_is_not_found(toy: Toy, name: str) -> None:
    (toy.path / name).unlink()
    with pytest.raises(NotFound):
        load_revision("r1", toy.path, toy.loaders())


def test_a_missing_object_is_not_found(toy: Toy) -> None:
    (toy.path / "objects" / hex_of(bundle_of(toy).engines[0].engine)).unlink()
    with pytest.raises(NotFound):
        load_revision("r1", toy.path, toy.loaders())


def test_another_bundle_than_the_one_asked_for_is_refused(toy: Toy) -> None:
    with pytest.raises(Refused):
        load_revision("r1", toy.path, toy.loaders(), digest_bytes(b"another"))


def test_an_engine_that_is_only_built_is_refused(toy: Toy) -> None:
    bundle = bundle_of(toy)
    built = tuple(dataclasses.replace(e, state=EngineState.BUILT) for e in bundle.engines)
    unverified = make_toy(toy.path.parent, engines=built)
    with pytest.raises(Refused):
        load_revision("r1", unverified.path, unverified.loaders())


def test_the_manifest_of_another_engine_is_refused_and_closed(toy: Toy) -> None:
    opened: list[FunctionEngine] = []

    def load_other(sealed: bytes, path: Path) -> FunctionEngine:
        manifest = load(EngineManifest, sealed)
        spec = dataclasses.replace(manifest.spec, encoder="another")
        engine = FunctionEngine(dataclasses.replace(manifest, spec=spec), lambda feeds: {})
        opened.append(engine)
        return engine

    with pytest.raises(Refused):
        load_revision("r1", toy.path, toy.loaders(load_engine=load_other))
    assert opened and all(engine.closed for engine in opened)


@pytest.mark.parametrize("same", [True, False])
def test_an_engine_with_a_baked_precision_belongs_to_the_encoder_it_was_baked_from(
    toy: Toy, same: bool
) -> None:
    def load_baked(sealed: bytes, path: Path) -> FunctionEngine:
        manifest = load(EngineManifest, sealed)
        baked = dataclasses.replace(manifest.spec, onnx=digest_bytes(b"baked"))
        source = manifest.spec.onnx if same else digest_bytes(b"another")
        changed = dataclasses.replace(manifest, spec=baked, source_onnx=source)
        return FunctionEngine(changed, lambda feeds: {})

    if not same:
        with pytest.raises(Refused):
            load_revision("r1", toy.path, toy.loaders(load_engine=load_baked))
        return
    revision = load_revision("r1", toy.path, toy.loaders(load_engine=load_baked))
    fingerprints = {item.contract.name: item.fingerprint for item in bundle_of(toy).encoders}
    assert {name: e.fingerprint for name, e in revision.encoders.items()} == fingerprints


IMAGE = DEFAULT_BRANCHES[0]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"answer": Answer("poem")}, Unsupported),
        ({"branches": (Branch("image", "image"),)}, Unsupported),
        (
            {"branches": (*DEFAULT_BRANCHES[:1], Branch("text", "text",
                          AdapterEntry("identity", "embedding", "another")))},
            Unsupported,
        ),
        (
            {"branches": (IMAGE, dataclasses.replace(DEFAULT_BRANCHES[2], then="image2"))},
            Unsupported,
        ),
        ({"assets": ()}, NotFound),
        ({"format": BUNDLE_FORMAT - 1}, Refused),
    ],
)  # fmt: skip
def test_a_bundle_that_could_not_answer_is_refused_when_it_is_loaded(
    toy: Toy, changes: dict[str, object], kind: type[ModalgateError]
) -> None:
    odd = make_toy(toy.path.parent, **changes)
    with pytest.raises(kind):
        load_revision("r1", odd.path, odd.loaders())
