"""The committed message classes are those of the committed `.proto` files."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.gateway.grpc.generate import PACKAGE, ROOT, generate

NAMES = ("health", "inference", "modalgate")


@pytest.mark.parametrize("suffix", ["_pb2.py", "_pb2.pyi"])
def test_generating_again_changes_nothing(tmp_path: Path, suffix: str) -> None:
    generate(tmp_path)
    for name in NAMES:
        committed = PACKAGE / f"{name}{suffix}"
        again = tmp_path / committed.relative_to(ROOT)
        assert again.read_text() == committed.read_text()
    assert {path.stem for path in PACKAGE.glob("*.proto")} == set(NAMES)
