from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from services.children.process import Limits, run_child
from services.engines.requests import PROBE, ProbeRequest


@pytest.mark.parametrize("niceness", [7, 15])
def test_a_child_gives_way_within_its_session_and_as_a_session(
    tmp_path: Path, niceness: int
) -> None:
    seen: set[tuple[int, str]] = set()

    def look() -> bool:
        for child in psutil.Process().children():
            try:
                if "services.children.child" not in child.cmdline():
                    continue
                group = Path(f"/proc/{child.pid}/autogroup")
                text = group.read_text().split()[-1] if group.exists() else str(niceness)
                seen.add((child.nice(), text))
            except (psutil.Error, OSError, IndexError):
                continue
        return False

    request = ProbeRequest("onnxruntime")
    run_child(
        PROBE, request, tmp_path, subject="a probe", limits=Limits(niceness=niceness), cancel=look
    )
    assert seen == {(niceness, str(niceness))}
