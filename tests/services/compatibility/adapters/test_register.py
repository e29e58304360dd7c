"""From pairs to a registered engine that is found again and applied."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from services.children.phases import Phases
from services.compatibility.adapters.applying import load_adapter_engine
from services.compatibility.adapters.building import Bench, Side, VersionPair, build_adapter
from services.compatibility.adapters.fitting import FitRequest, FittedAdapters, fit_adapters
from services.compatibility.adapters.pairs import AdapterPairs
from services.compatibility.adapters.register import (
    find_adapters,
    register_adapters,
    registered_pairs,
)
from services.compatibility.geometry import paired_cosines
from services.compatibility.tasks.fit_adapters import run
from tests.services.compatibility.engines import CONTRACT
from tests.services.engines.conftest import Yard, make_yard
from validators.compatibility.adapters import AdapterKind, AdapterRecord, choose_adapter
from validators.contracts.digest import Digest, canonical_json, digest_bytes
from validators.contracts.errors import BadInput, Conflict, NotFound, Refused
from validators.contracts.origin import VectorOrigin

Matrix = npt.NDArray[np.float64]
RANDOM = np.random.default_rng(11)
TURN = np.linalg.qr(RANDOM.standard_normal((8, 8)))[0]


def pairs(items: int, noise: float) -> AdapterPairs:
    """Two views of each item, the new version being the old one turned."""
    first = RANDOM.standard_normal((items, 8))
    old = np.concatenate([first, first + 0.1 * RANDOM.standard_normal((items, 8))])
    new = old @ TURN + noise * RANDOM.standard_normal(old.shape)
    return AdapterPairs(old, new, np.tile(np.arange(items), 2), np.repeat([0, 1], items))


def side(number: str) -> Side:
    origin = VectorOrigin(digest_bytes(f"encoder {number}".encode()), digest_bytes(b"engine"))
    return Side(replace(CONTRACT, version=number), origin)


VERSIONS = VersionPair(side("1"), side("2"), "features")
TURNED = pairs(100, 0.02)


@dataclass
class Made:
    yard: Yard
    fitted: FittedAdapters
    record: AdapterRecord


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("adapters")
    yard = make_yard(root)
    fitted = fit_adapters(TURNED, root / "fit", subject="image")
    bench = Bench(yard.workshop, yard.store, yard.verifier, root / "work", "onnxruntime")
    record = build_adapter(bench, VERSIONS, fitted, TURNED)
    register_adapters(yard.store, yard.signer, [record])
    return Made(yard, fitted, record)


def test_the_simplest_adapter_is_taken_where_all_are_alike(made: Made) -> None:
    assert [item.kind for item in made.fitted.measured] == list(AdapterKind)
    assert made.record.measured.kind is AdapterKind.PROCRUSTES
    assert made.record.measured.kept.low > 0.8
    assert [item.kind for item in made.record.refused] == [AdapterKind.AFFINE, AdapterKind.MLP]
    assert (made.record.measured.fitted, made.record.measured.held_out) == (70, 30)


def test_the_engine_does_what_the_fit_promised(made: Made) -> None:
    fitted, engine = made.fitted.measured[0], made.record.measured
    assert engine.kept == fitted.kept and engine.flips == fitted.flips
    assert engine.cosine.value == pytest.approx(fitted.cosine.value, abs=1e-5)
    assert engine.latency_ms > 0


def test_a_registered_adapter_is_found_and_applied(made: Made, tmp_path: Path) -> None:
    old, new = VERSIONS.old.origin, VERSIONS.new.origin
    (record,) = find_adapters(made.yard.store, made.yard.verifier, old.encoder, new.encoder)
    assert record == made.record
    assert list(registered_pairs(made.yard.store)) == [(old.encoder, new.encoder)]
    with load_adapter_engine(record, made.yard.store, made.yard.verifier, tmp_path) as adapter:
        adapted = adapter(TURNED.new, new)  # more rows than one batch takes
        assert paired_cosines(adapted.astype(float), TURNED.old).min() > 0.99
        with pytest.raises(Refused):
            adapter(TURNED.new, old)
        with pytest.raises(BadInput):
            adapter(TURNED.new[:, :5], new)
        with pytest.raises(BadInput):
            adapter(TURNED.new[:0], new)


def test_the_way_back_is_another_adapter(made: Made) -> None:
    old, new = VERSIONS.old.origin.encoder, VERSIONS.new.origin.encoder
    assert find_adapters(made.yard.store, made.yard.verifier, new, old) == ()


def test_what_no_trusted_key_signed_is_refused(made: Made, tmp_path: Path) -> None:
    stranger = make_yard(tmp_path)
    stranger.store.put(canonical_json(made.record))
    register_adapters(stranger.store, made.yard.signer, [made.record])
    with pytest.raises(Refused):
        find_adapters(
            stranger.store, stranger.verifier, made.record.old.encoder, made.record.new.encoder
        )


def test_a_document_under_another_pairs_name_is_refused(made: Made, tmp_path: Path) -> None:
    yard = make_yard(tmp_path)
    digest = register_adapters(yard.store, yard.signer, [made.record])
    (name,) = yard.store.references("adapters/")
    _, old, new = name.split("/")
    yard.store.set_reference(f"adapters/{new}/{old}", digest, expected=None)
    with pytest.raises(Refused):
        find_adapters(yard.store, yard.verifier, Digest(f"sha256:{new}"), Digest(f"sha256:{old}"))


def test_registering_again_replaces_and_the_same_changes_nothing(
    made: Made, tmp_path: Path
) -> None:
    yard = make_yard(tmp_path)
    first = register_adapters(yard.store, yard.signer, [made.record])
    assert register_adapters(yard.store, yard.signer, [made.record]) == first
    other = replace(made.record, output="other")
    assert register_adapters(yard.store, yard.signer, [made.record, other]) != first
    found = find_adapters(
        yard.store, yard.verifier, made.record.old.encoder, made.record.new.encoder
    )
    assert [item.output for item in found] == ["features", "other"]


def test_adapters_of_two_pairs_are_no_registration(made: Made) -> None:
    other = replace(made.record, old=made.record.new, output="b")
    for wrong in ([], [made.record, made.record], [made.record, other]):
        with pytest.raises(BadInput):
            register_adapters(made.yard.store, made.yard.signer, wrong)


def test_two_registrations_at_once_end_in_a_conflict(made: Made, tmp_path: Path) -> None:
    yard = make_yard(tmp_path)

    class Raced(type(yard.store)):  # type: ignore[misc]
        def put(self, data: bytes) -> Digest:
            digest: Digest = super().put(data)
            name = "/".join(
                ("adapters", *(made.record.old.encoder[7:], made.record.new.encoder[7:]))
            )
            self.set_reference(name, super().put(b"{}"), expected=None)
            return digest

    with pytest.raises(Conflict):
        register_adapters(Raced(tmp_path / "raced"), yard.signer, [made.record])


def test_too_few_pairs_are_not_fitted_and_the_answer_says_how_many_lack(tmp_path: Path) -> None:
    fitted = fit_adapters(pairs(40, 0.0), tmp_path, subject="image")
    assert (fitted.choice.chosen, fitted.choice.missing_pairs) == (None, 24)
    assert fitted.measured == () and fitted.models == {}


def test_spaces_that_no_map_joins_get_no_adapter(tmp_path: Path) -> None:
    unrelated = replace(TURNED, new=RANDOM.standard_normal(TURNED.new.shape))
    unrelated.sound().save(tmp_path / "pairs.npz")
    request = FitRequest(str(tmp_path / "pairs.npz"), str(tmp_path), 0)
    measured = run(request, Phases(lambda phase: None)).measured
    choice = choose_adapter(measured, pairs=100)
    assert choice.chosen is None and choice.missing_pairs == 0
    assert "lower bound" in choice.reason
    bench = Bench(*(None,) * 5)  # type: ignore[arg-type]
    with pytest.raises(BadInput):
        build_adapter(bench, VERSIONS, FittedAdapters(choice, measured, {}), unrelated)


def test_a_damaged_engine_is_refused(made: Made, tmp_path: Path) -> None:
    wrong = replace(made.record, engine=made.record.onnx)
    with (
        pytest.raises(Refused),
        load_adapter_engine(wrong, made.yard.store, made.yard.verifier, tmp_path),
    ):
        pass
    absent = replace(made.record, engine=digest_bytes(b"absent"))
    with (
        pytest.raises(NotFound),
        load_adapter_engine(absent, made.yard.store, made.yard.verifier, tmp_path),
    ):
        pass
