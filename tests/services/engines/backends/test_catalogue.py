from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from services.engines.backends.catalogue import backend, backends
from validators.contracts.errors import NotFound


def test_the_four_backends_are_listed_with_the_same_files_each() -> None:
    names = [item.name for item in backends()]
    assert names == ["openvino", "onnxruntime", "tensorrt", "tensorrt_rtx"]
    root = Path(sys.modules["services.engines.backends"].__path__[0])
    for name in names:
        files = {path.name for path in (root / name).glob("*.py")}
        assert files == {"__init__.py", "build.py", "run.py", "probe.py"}


def test_an_unknown_backend_is_not_found() -> None:
    with pytest.raises(NotFound, match="'tvm'"):
        backend("tvm")


def test_every_probe_answers_with_a_reason() -> None:
    for item in backends():
        found = item.probe()
        assert found.reason
        assert found.available or not found.can_run
        assert (found.host is not None) == found.can_run


def test_listing_backends_imports_none_of_their_packages() -> None:
    code = (
        "import sys, services.engines.load\n"
        "heavy = {'torch', 'onnxruntime', 'openvino', 'tensorrt', 'tensorrt_rtx'}\n"
        "sys.exit(', '.join(heavy & sys.modules.keys()) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
