"""Which vectors may meet."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.digest import digest_bytes
from validators.contracts.engine import (
    EngineManifest,
    EngineSpec,
    EngineState,
    HostIdentity,
    Precision,
)
from validators.contracts.errors import Refused
from validators.contracts.origin import VectorOrigin, may_mix, require_mix, siblings_of

ONE, TWO, THREE = (digest_bytes(name) for name in (b"1", b"2", b"3"))
SOURCE, BAKED = digest_bytes(b"onnx"), digest_bytes(b"baked")


def manifest(name: str, **changes: object) -> EngineManifest:
    spec = EngineSpec(
        "text", SOURCE, "openvino", "1", Precision.FP32, (), HostIdentity("cpu", "here")
    )
    made = EngineManifest(
        spec.key, spec, digest_bytes(name.encode()), 1, EngineState.VERIFIED,
        digest_bytes(b"log"), (),
    )  # fmt: skip
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


FIRST = manifest("first")


@pytest.mark.parametrize(
    ("other", "siblings"),
    [
        (manifest("second"), True),
        (manifest("second", spec=dataclasses.replace(FIRST.spec, precision=Precision.BF16)), True),
        (manifest("second", spec=dataclasses.replace(FIRST.spec, onnx=BAKED),
                  source_onnx=SOURCE), True),
        (manifest("second", spec=dataclasses.replace(FIRST.spec, onnx=BAKED)), False),
        (manifest("second", source_onnx=BAKED), False),
        (manifest("second", state=EngineState.BUILT), False),
        (manifest("second", spec=dataclasses.replace(FIRST.spec, encoder="image")), False),
    ],
)  # fmt: skip
def test_engines_are_siblings_when_both_were_verified_against_one_model(
    other: EngineManifest, siblings: bool
) -> None:
    found = siblings_of([FIRST, other])
    assert found == siblings_of([other, FIRST])
    assert (frozenset((FIRST.engine, other.engine)) in found) is siblings


@pytest.mark.parametrize(
    ("one", "other", "mixes"),
    [
        (VectorOrigin(ONE, ONE), VectorOrigin(ONE, ONE), True),
        (VectorOrigin(ONE, ONE), VectorOrigin(ONE, TWO), True),
        (VectorOrigin(ONE, ONE), VectorOrigin(ONE, THREE), False),
        (VectorOrigin(ONE, ONE), VectorOrigin(TWO, ONE), False),
        (VectorOrigin(ONE, ONE), VectorOrigin(TWO, TWO), False),
    ],
)
def test_another_version_never_mixes_and_another_engine_only_as_a_sibling(
    one: VectorOrigin, other: VectorOrigin, mixes: bool
) -> None:
    siblings = {frozenset((ONE, TWO))}
    assert may_mix(one, other, siblings) is may_mix(other, one, siblings) is mixes
    if mixes:
        require_mix(one, other, siblings, where="a catalogue")
        return
    with pytest.raises(Refused) as caught:
        require_mix(one, other, siblings, where="a catalogue")
    assert caught.value.where.startswith("a catalogue: encoder ")
    assert caught.value.remedy


@given(st.lists(st.sampled_from([EngineState.BUILT, EngineState.VERIFIED]), max_size=6))
def test_what_was_only_built_is_nobody_s_sibling(states: list[EngineState]) -> None:
    made = [manifest(str(number), state=state) for number, state in enumerate(states)]
    verified = [item.engine for item in made if item.state is EngineState.VERIFIED]
    assert siblings_of(made) == {frozenset(pair) for pair in combinations(verified, 2)}
