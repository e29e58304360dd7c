from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from services.engines.backends.catalogue import backend
from services.engines.backends.openvino.build import bounds
from services.engines.backends.openvino.probe import library
from services.engines.specs import specify
from tests.services.engines.conftest import Yard
from tests.services.engines.models import IMAGE, TEXT_PROFILES, image_entry
from validators.contracts.engine import Precision
from validators.contracts.errors import Unsupported


def test_profiles_become_the_box_around_them() -> None:
    assert bounds(TEXT_PROFILES) == {"ids": [(1, 8), (2, 32)], "mask": [(1, 8), (2, 32)]}


@pytest.mark.parametrize("precision", [Precision.BF16, Precision.FP16])
def test_a_precision_is_given_as_asked_or_refused_and_never_swapped(
    yard: Yard, image_onnx: Path, factories: Path, precision: Precision
) -> None:
    capabilities = library().Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    entry = dataclasses.replace(image_entry(), precision=precision)
    spec = specify(IMAGE, yard.store.put_file(image_onnx), "openvino", precision, entry.profiles)
    if precision.name in capabilities:
        built = yard.workshop.obtain(spec, spec.onnx, IMAGE)
        verified = yard.workshop.verify(built, IMAGE, entry.source, factories)
        assert dict(verified.verdict.metrics)["max_rel"] > 1e-5  # it really ran in that precision
    else:
        with pytest.raises(Unsupported, match="this CPU would compute in"):
            yard.workshop.obtain(spec, spec.onnx, IMAGE)


def test_the_target_is_this_host() -> None:
    found = backend("openvino").probe()
    assert backend("openvino").choose_target(("host",), found) == found.host
