"""Revisions and traffic over the admin port."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from infra.clocks import SystemClock
from services.gateway.gateway import Gateway
from services.gateway.settings import GatewaySettings
from tests.services.gateway import toy as t
from tests.services.gateway.conftest import TOKEN, StartGateway, until
from validators.contracts.digest import digest_bytes
from validators.contracts.pipeline import Answer

SESSIONS = 400


@pytest.fixture
def second(toy: t.Toy) -> t.Toy:
    """Another release of the same service."""
    return t.make_toy(toy.path.parent, answer=Answer("retrieval", 1))


async def add(admin: httpx.AsyncClient, name: str, path: Path, bundle: str) -> httpx.Response:
    body = {"name": name, "path": str(path), "bundle": bundle}
    return await admin.post("/admin/revisions", json=body)


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}"])
async def test_without_the_token_nothing_is_told(gateway: Gateway, header: str | None) -> None:
    headers = {} if header is None else {"authorization": header}
    async with httpx.AsyncClient(base_url=gateway.admin_url, headers=headers) as stranger:
        for method, path in (
            ("GET", "/admin/status"), ("GET", "/admin/stats"), ("POST", "/admin/revisions"),
            ("DELETE", "/admin/revisions/r1"), ("PUT", "/admin/traffic"),
        ):  # fmt: skip
            response = await stranger.request(method, path)
            assert response.status_code == 401
            assert set(response.json()["error"]) == {"what", "where", "remedy"}


async def test_the_status_names_revisions_and_traffic(admin: httpx.AsyncClient, toy: t.Toy) -> None:
    assert (await admin.get("/admin/status")).json() == {
        "service": t.SERVICE,
        "traffic": {"stable": "r1", "canary": None, "percent": 0},
        "revisions": [
            {"name": "r1", "bundle": toy.digest, "ready": True, "percent": 100, "message": ""}
        ],
    }


async def test_a_canary_comes_up_gets_its_share_and_takes_over(
    admin: httpx.AsyncClient, client: httpx.AsyncClient, second: t.Toy
) -> None:
    async def counts() -> dict[str, int]:
        revisions = []
        for number in range(SESSIONS):
            response = await client.post(
                "/v1/answer", json={"text": "red", "session_id": f"s-{number}"}
            )
            revisions.append(response.json()["revision"])
        return {name: revisions.count(name) for name in ("r1", "r2")}

    for _ in range(2):  # loading what is loaded does nothing
        assert (await add(admin, "r2", second.path, second.digest)).status_code == 200
    split = {"stable": "r1", "canary": "r2", "percent": 25}
    assert (await admin.put("/admin/traffic", json=split)).json()["traffic"] == split
    shared = await counts()
    assert shared["r2"] / SESSIONS == pytest.approx(0.25, abs=0.08)
    assert (await counts()) == shared  # the same sessions, the same revisions

    versioned = await client.get("/v2/models/text/versions/r2")
    assert versioned.json()["versions"] == ["r1", "r2"]
    promoted = {"stable": "r2", "canary": None, "percent": 0}
    assert (await admin.put("/admin/traffic", json=promoted)).status_code == 200
    assert (await counts()) == {"r1": 0, "r2": SESSIONS}
    stats = {s["name"]: s for s in (await admin.get("/admin/stats")).json()}
    assert stats["r1"]["requests"] == 2 * shared["r1"]
    assert stats["r2"]["errors"] == 0
    assert len(stats["r2"]["latency_ms"]) == stats["r2"]["requests"]

    gone = await admin.delete("/admin/revisions/r1")
    assert [r["name"] for r in gone.json()["revisions"]] == ["r2"]


async def test_a_revision_with_traffic_stays(admin: httpx.AsyncClient) -> None:
    response = await admin.delete("/admin/revisions/r1")
    assert response.status_code == 409
    assert "traffic" in response.json()["error"]["what"]


async def test_an_unloaded_revision_finishes_its_requests_first(
    start_gateway: StartGateway, second: t.Toy
) -> None:
    gate = t.Gate(t.run_text)
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with (
        start_gateway({"text": gate}) as gateway,
        httpx.AsyncClient(base_url=gateway.admin_url, headers=headers, timeout=60) as admin,
        httpx.AsyncClient(base_url=gateway.rest_url, timeout=60) as client,
    ):
        running = asyncio.create_task(client.post("/v1/answer", json={"text": "red"}))
        await gate.reached()
        await add(admin, "r2", second.path, second.digest)
        await admin.put("/admin/traffic", json={"stable": "r2"})
        removal = asyncio.create_task(admin.delete("/admin/revisions/r1"))
        leaving = gateway.revisions.find("r1")
        assert leaving is not None
        await until(lambda: leaving.leaving)
        assert not removal.done()
        gate.open.set()
        assert (await running).json()["revision"] == "r1"
        assert (await removal).status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"stable": "r9"}, 404),
        ({"stable": "r1", "canary": "r9", "percent": 5}, 404),
        ({"stable": "r1", "percent": 5}, 400),
        ({"stable": "r1", "percent": "5"}, 400),
        ({"steady": "r1"}, 400),
        ([], 400),
    ],
)
async def test_traffic_that_cannot_be_is_refused_and_nothing_moves(
    admin: httpx.AsyncClient, body: object, status: int
) -> None:
    before = (await admin.get("/admin/status")).json()
    assert (await admin.put("/admin/traffic", json=body)).status_code == status
    assert (await admin.get("/admin/status")).json() == before


async def test_a_bundle_that_does_not_hold_leaves_nothing_behind(
    admin: httpx.AsyncClient, second: t.Toy, tmp_path: Path
) -> None:
    (second.path / "bundle.json").write_bytes(
        (second.path / "bundle.json").read_bytes().replace(b'"top_k":1', b'"top_k":9')
    )
    before = (await admin.get("/admin/status")).json()
    tampered = await add(admin, "r2", second.path, second.digest)
    assert tampered.status_code == 403
    assert set(tampered.json()["error"]) == {"what", "where", "remedy"}
    missing = await add(admin, "r2", tmp_path / "nothing", second.digest)
    assert missing.status_code == 404
    for body in ({"name": "r2", "path": "relative"}, {"name": "a b", "path": "/x"}, {}):
        assert (await admin.post("/admin/revisions", json=body)).status_code == 400
    assert (await admin.get("/admin/status")).json() == before


async def test_a_name_belongs_to_one_bundle(admin: httpx.AsyncClient, second: t.Toy) -> None:
    assert (await add(admin, "r1", second.path, second.digest)).status_code == 409
    other = digest_bytes(b"another")
    assert (await add(admin, "r2", second.path, other)).status_code == 403


async def test_another_service_has_another_gateway(admin: httpx.AsyncClient, toy: t.Toy) -> None:
    stranger = t.make_toy(toy.path.parent, service="sounds")
    response = await add(admin, "r2", stranger.path, stranger.digest)
    assert response.status_code == 400
    assert "sounds" in response.json()["error"]["what"]


async def test_a_gateway_without_traffic_is_not_ready(toy: t.Toy) -> None:
    gateway = Gateway(
        t.SERVICE, TOKEN, toy.loaders(), SystemClock(),
        settings=GatewaySettings(drain_grace_s=0.0, drain_idle_s=0.0),
    )  # fmt: skip
    await gateway.start()
    async with httpx.AsyncClient(base_url=gateway.rest_url) as client:
        assert (await client.get("/v2/health/ready")).status_code == 503
        assert (await client.get("/v2/health/live")).status_code == 200
        refused = await client.post("/v1/answer", json={"text": "red"})
        assert refused.status_code == 503
    await gateway.drain()
