from __future__ import annotations

import dataclasses

import pytest

from services.engines.elastic.replacement import require_replacement
from tests.services.engines.elastic.machines import LARGE, SMALL, CountingEngine, profile
from validators.contracts.digest import digest_bytes
from validators.contracts.engine import EngineManifest, EngineState, Precision
from validators.contracts.errors import Refused

OLD = CountingEngine().manifest


@pytest.mark.parametrize("profiles", [SMALL, LARGE, (profile((1, 1), (9, 99)),)])
def test_an_engine_that_reaches_as_far_may_replace(profiles: tuple[object, ...]) -> None:
    require_replacement(OLD, CountingEngine(profiles, "two").manifest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (CountingEngine(encoder="image").manifest, "another encoder"),
        (CountingEngine(onnx=digest_bytes(b"x")).manifest, "another ONNX file"),
        (CountingEngine(backend="openvino").manifest, "another backend"),
        (CountingEngine(precision=Precision.BF16).manifest, "bf16, not fp32"),
        (dataclasses.replace(OLD, source_onnx=digest_bytes(b"x")), "baked from another"),
        (dataclasses.replace(OLD, inputs=OLD.inputs[:1]), "another contract"),
        (dataclasses.replace(OLD, outputs=()), "another contract"),
        (dataclasses.replace(OLD, state=EngineState.BUILT), "not VERIFIED"),
        (CountingEngine(SMALL[:1]).manifest, "would not take shapes"),
        (CountingEngine((profile((1, 20), (4, 40)),)).manifest, "would not take shapes"),
    ],
)
def test_any_other_engine_is_refused(new: EngineManifest, why: str) -> None:
    with pytest.raises(Refused, match=why):
        require_replacement(OLD, new)
