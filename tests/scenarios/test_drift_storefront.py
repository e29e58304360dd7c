"""The reference service's own data as live requests: what is measured live is what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from flows.examples.storefront import data as storefront
from flows.examples.storefront.stamps import FOLDER
from tests.scenarios.stage import PEOPLE, Stage
from tests.scenarios.test_drift_watch import await_windows_of

pytestmark = pytest.mark.heavy

SERVICE = "storefront"
PIPELINE = Path(storefront.__file__).with_name("pipeline.yaml")
CHOICE = "stamps" if FOLDER.is_dir() else "embedded"


def pipeline_of(folder: Path) -> Path:
    """The reference service, recording everything, and in no hurry on a busy machine."""
    document: dict[str, Any] = yaml.safe_load(PIPELINE.read_text())
    document["gates"]["drift"]["record"] = 1.0
    document["slo"] |= {"class": "offline", "p99_ms": 5000, "soft_limit_ms": 4000}
    for branch in document["branches"].values():
        branch["timeout_ms"] = 4500
    document["backends"] = [{"backend": "openvino", "deploy": True}, {"backend": "onnxruntime"}]
    document["deploy"]["hold_s"] = 0.5
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path


def send_all(url: str, folder: Path) -> int:
    rows = [json.loads(line) for line in (folder / "manifest.jsonl").read_text().splitlines()]
    with httpx.Client(base_url=url, timeout=120) as client:
        for row in rows:
            files = {"image": ("a", (folder / row["image"]).read_bytes(), "image/png")}
            tags = {
                name: row["tags"][name] for name in ("sensor", "channels", "lighting", "source")
            }
            data = {"text": row["text"], "metadata": json.dumps(tags)}
            answer = client.post("/v1/answer", files=files, data=data)
            assert answer.status_code == 200, answer.text
    return len(rows)


def test_the_storefront_s_release_data_does_not_drift(fresh: Stage, tmp_path: Path) -> None:
    approvals = [word for name in PEOPLE for word in ("--approve-as", name)]
    settings = {
        "MODALGATE_EXAMPLE_DATA": CHOICE, "MODALGATE_GATEWAY_WINDOWS_EVERY_S": "0.5",
        "MODALGATE_GATEWAY_DEFAULT_TIMEOUT_MS": "30000",
    }  # fmt: skip
    ran = fresh.cli("release", str(pipeline_of(tmp_path)), *approvals, "--json", **settings)
    assert ran.code == 0, ran.stdout + ran.stderr
    raw = tmp_path / "raw"
    raw.mkdir()
    (storefront.build_stamps if CHOICE == "stamps" else storefront.build_embedded)(raw)
    sent = send_all(ran.document["deployment"]["rest_url"], raw)
    assert fresh.cli("stop", SERVICE, "--json").code == 0  # what is left is written down
    await_windows_of(fresh, SERVICE, 1)
    checked = fresh.cli("drift", "check", SERVICE, "--json")
    assert checked.code == 0, checked.stdout + checked.stderr
    document = checked.document
    print(json.dumps({k: document[k] for k in ("rows", "seen", "columns", "outcome")}))
    assert document["rows"] >= min(sent, 300) * 0.9
    assert {"embedding.image", "embedding.text", "image.sharpness"} <= set(document["columns"])
    drifted = [f for v in document["verdicts"] for f in v["findings"] if f["outcome"] == "FAIL"]
    assert drifted == []
