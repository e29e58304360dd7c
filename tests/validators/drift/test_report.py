from __future__ import annotations

import json
import socket
import subprocess
import sys

import numpy as np
import pytest

from tests.validators.drift.windows import OTHER_ORIGIN, embedded, make_window
from validators.drift.window import DriftWindow

pytestmark = pytest.mark.slow


def window(shift: float, rows: int = 80) -> DriftWindow:
    generator = np.random.default_rng(3)
    brightness = generator.normal(120 + shift, 20, size=rows)
    brightness[:5] = np.nan
    return make_window(
        {"image.brightness": brightness, "audio.rms_db": np.full(rows, np.nan)},
        {"image": generator.normal(shift / 50, size=(rows, 24))},
        {"presence.audio": ["no"] * rows},
        {"sensor": [("left", "right", None)[row % 3] for row in range(rows)]},
    )


@pytest.fixture(scope="module")
def no_network() -> object:
    """Every connection fails, so what would be sent would be seen."""
    patch = pytest.MonkeyPatch()

    def refuse(*_arguments: object) -> None:
        raise AssertionError("a report reached for the network")

    patch.setattr(socket.socket, "connect", refuse)
    patch.setattr(socket, "getaddrinfo", refuse)
    yield patch
    patch.undo()


def test_a_report_shows_what_both_windows_have(no_network: object) -> None:
    from validators.drift.report import render_report

    found = render_report(window(0), window(40))
    assert found is not None
    values = {item["metric_name"]: item["value"] for item in json.loads(found.json)["metrics"]}
    names = " ".join(values)
    assert "image.brightness" in names
    assert "tag.sensor" in names
    assert "EmbeddingsDrift" in names
    assert "audio.rms_db" not in names
    assert b"image.brightness" in found.html


def test_vectors_of_two_encoder_versions_are_not_drawn(no_network: object) -> None:
    from validators.drift.report import render_report

    vectors = np.random.default_rng(1).normal(size=(40, 4))
    one, other = (
        make_window({}, {"image": embedded(vectors, origin=origin)})
        for origin in (OTHER_ORIGIN, None)
    )
    assert render_report(one, other) is None


def test_importing_the_gate_does_not_import_evidently() -> None:
    code = "import sys, validators.drift.gate; sys.exit('evidently' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
