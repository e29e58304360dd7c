"""Shapes of any size, and engines that change, behind a real gateway."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from infra.builds.folder import FolderQueue
from infra.clocks import SystemClock
from services.engines.elastic.filing import BackgroundFiling
from services.engines.profiles.bounds import shape_profile
from services.gateway.gateway import Gateway
from services.gateway.requests import Call, Medium, MultimodalRequest
from services.gateway.revision import load_revision
from tests.services.gateway import toy as t
from tests.services.gateway.conftest import TOKEN, StartGateway, until
from validators.contracts.digest import canonical_json, digest_bytes
from validators.contracts.documents import load
from validators.contracts.engine import EngineManifest, EngineState, Outside, ShapeProfile

LARGER = {"batch": 16, "tokens": 64}


def tensors(batch: int, tokens: int) -> dict[str, Any]:
    names = ("input_ids", "attention_mask")
    return {
        "inputs": [
            {"name": n, "shape": [batch, tokens], "datatype": "INT64", "data": [1] * batch * tokens}
            for n in names
        ]
    }


def outside(*ways: Outside) -> Callable[[t.Toy], t.Toy]:
    """The toy with a policy of its encoders for shapes outside."""

    def make(toy: t.Toy) -> t.Toy:
        from services.gateway.folder import open_folder

        bundle = open_folder(toy.path, toy.loaders().verifier).bundle
        encoders = tuple(dataclasses.replace(item, outside=ways) for item in bundle.encoders)
        return t.make_toy(toy.path.parent, encoders=encoders)

    return make


@contextlib.asynccontextmanager
async def clients(gateway: Gateway) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with (
        httpx.AsyncClient(base_url=gateway.rest_url, timeout=60) as client,
        httpx.AsyncClient(base_url=gateway.admin_url, headers=headers, timeout=60) as admin,
    ):
        yield client, admin


async def infer(client: httpx.AsyncClient, batch: int, tokens: int) -> httpx.Response:
    return await client.post("/v2/models/text/infer", json=tensors(batch, tokens))


async def test_a_batch_beyond_every_profile_is_split(client: httpx.AsyncClient) -> None:
    response = await infer(client, 20, 3)
    assert response.status_code == 200
    (output,) = response.json()["outputs"]
    assert output["shape"] == [20, 3]
    assert output["data"][0::3] == pytest.approx([3.001] * 20)
    metrics = (await client.get("/metrics")).text
    assert 'modalgate_padded_work_ratio_count{encoder="text",revision="r1",way="split"} 1.0' in (
        metrics
    )


async def test_a_sequence_that_does_not_fit_is_400_with_what_would(
    client: httpx.AsyncClient, gateway: Gateway
) -> None:
    response = await infer(client, 2, 17)
    assert response.status_code == 400
    assert "tokens 16" in response.json()["error"]
    (stats,) = gateway.admin_handlers.stats()
    assert stats.errors == 0


async def test_a_cut_answer_says_so_wherever_it_goes(
    start_gateway: StartGateway, toy: t.Toy
) -> None:
    served = outside(Outside.CUT)(toy)
    async with (
        start_gateway(served=served, make_preprocessor=_long_texts) as gateway,
        clients(gateway) as (client, admin),
    ):
        parameters = (await infer(client, 2, 17)).json()["parameters"]
        assert parameters["degraded"] is True
        assert "tokens to its first 16" in parameters["modalgate.degraded"]
        answer = (await client.post("/v1/answer", json={"text": "blue " * 20})).json()
        assert answer["degraded"] is True
        assert "cut: tokens" in answer["branches"]["text"]["reason"]
        assert answer["items"][0]["id"] == "blue"
        body = {
            "inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["blue " * 20]}]
        }
        piped = (await client.post(f"/v2/models/{t.SERVICE}/infer", json=body)).json()["parameters"]
        assert piped["degraded"] is True and piped["modalgate.degraded"].startswith("text: ")
        short = (await client.post("/v1/answer", json={"text": "blue"})).json()
        assert short["degraded"] is False and "reason" not in short["branches"]["text"]
        (stats,) = (await admin.get("/admin/stats")).json()
        assert stats["degraded"] == 3
        metrics = (await client.get("/metrics")).text
        assert 'modalgate_cut_answers_total{encoder="text",revision="r1"} 3.0' in metrics


def _long_texts(spec: Any, read: Any) -> Any:
    """Preprocessing that does not cut: as where profiles are narrower than the tokenizer."""
    from services.preprocess import make_preprocessor

    if spec.kind == "wordpiece":
        spec = dataclasses.replace(spec, options=(("max_tokens", 64),))
    return make_preprocessor(spec, read)


async def test_a_branch_whose_shape_no_engine_takes_is_masked(
    start_gateway: StartGateway, toy: t.Toy
) -> None:
    long = ("text", (Medium("text/plain", "blue " * 20),))
    picture = ("image", (Medium("image/png", t.picture("red")),))
    async with (
        start_gateway(make_preprocessor=_long_texts) as gateway,
        clients(gateway) as (client, _),
    ):
        call = Call("q", gateway.handlers.clock.monotonic_ns(), 60_000)
        answer = await gateway.handlers.answer(call, MultimodalRequest((picture, long)))
        assert answer.degraded
        assert answer.branches["text"].status == "failed"
        alone = await client.post("/v1/answer", json={"text": "blue " * 20})
        assert alone.status_code == 400
        assert "tokens 16" in alone.json()["error"]["remedy"]


# -- asking for engines, and getting them ---------------------------------------------------------


def larger(toy: t.Toy, folder: Path, name: str = "text", **changes: Any) -> dict[str, str]:
    """The files of another engine of an encoder, as an admin names them."""
    from services.gateway.folder import open_folder

    bundle_folder = open_folder(toy.path, toy.loaders().verifier)
    old = load(
        EngineManifest, bundle_folder.read(bundle_folder.bundle.deployed_engine(name).manifest)
    )
    profiles: tuple[ShapeProfile, ...] = (
        *old.spec.profiles, shape_profile(old.inputs, t.LEAST, LARGER, LARGER)
    )  # fmt: skip
    spec = dataclasses.replace(old.spec, profiles=profiles)
    engine = digest_bytes(canonical_json(sorted(changes)) + name.encode())
    new = dataclasses.replace(old, spec=spec, key=spec.key, engine=engine)
    new = dataclasses.replace(new, **changes)
    manifest, data = folder / "manifest.json", folder / "engine"
    manifest.write_bytes(canonical_json(new))
    data.write_text(name)
    return {"manifest": str(manifest), "engine": str(data)}


async def test_an_engine_is_replaced_and_takes_what_the_old_one_refused(
    client: httpx.AsyncClient, admin: httpx.AsyncClient, toy: t.Toy, tmp_path: Path
) -> None:
    assert (await infer(client, 2, 40)).status_code == 400
    body = larger(toy, tmp_path)
    swapped = await admin.put("/admin/revisions/r1/engines/text", json=body)
    assert swapped.status_code == 200, swapped.text
    assert swapped.json()["encoder"] == "text"
    assert len(swapped.json()["profiles"]) == 2
    told = await infer(client, 2, 40)
    assert told.status_code == 200
    assert told.json()["parameters"]["modalgate.engine"] == swapped.json()["engine"]
    shapes = {item["encoder"]: item for item in (await admin.get("/admin/shapes")).json()}
    assert shapes["text"]["counts"] == {"swaps": 1}
    assert shapes["text"]["engine"] == swapped.json()["engine"]
    assert shapes["text"]["recorded"]["counts"] == [{"count": 2, "sizes": [2, 40]}]
    assert shapes["speech"]["recorded"]["dims"] == ["batch"]
    metrics = (await client.get("/metrics")).text
    assert 'modalgate_engine_swaps_total{encoder="text",revision="r1"} 1.0' in metrics
    # Vectors of the engine before may still be compared: both are verified against one model.
    before = load_revision("x", toy.path, toy.loaders()).encoder("text").origin
    insisted = await client.post(
        "/v1/answer", json={"text": "red"},
        headers={"x-modalgate-origin": f"text={before.encoder}/{before.engine}"},
    )  # fmt: skip
    assert insisted.status_code == 200


@pytest.mark.parametrize(
    "changes",
    [{"state": EngineState.BUILT}, {"source_onnx": digest_bytes(b"other")}, {"inputs": ()}],
)
async def test_an_engine_that_may_not_replace_changes_nothing(
    client: httpx.AsyncClient, admin: httpx.AsyncClient, toy: t.Toy, tmp_path: Path,
    changes: dict[str, Any],
) -> None:  # fmt: skip
    before = (await admin.get("/admin/shapes")).json()
    body = larger(toy, tmp_path, **changes)
    refused = await admin.put("/admin/revisions/r1/engines/text", json=body)
    assert refused.status_code == 403, refused.text
    assert set(refused.json()["error"]) == {"what", "where", "remedy"}
    assert (await admin.get("/admin/shapes")).json() == before
    assert (await infer(client, 2, 3)).status_code == 200


async def test_what_the_admin_names_wrongly_is_said(
    admin: httpx.AsyncClient, toy: t.Toy, tmp_path: Path
) -> None:
    body = larger(toy, tmp_path)
    for path, sent, status in (
        ("r9/engines/text", body, 404),
        ("r1/engines/lidar", body, 404),
        ("r1/engines/image", body, 403),
        ("r1/engines/text", {**body, "manifest": str(tmp_path / "none")}, 404),
        ("r1/engines/text", {**body, "engine": "relative"}, 400),
        ("r1/engines/text", {}, 400),
    ):
        response = await admin.put(f"/admin/revisions/{path}", json=sent)
        assert response.status_code == status, response.text
    bare = httpx.AsyncClient(base_url=str(admin.base_url))
    async with bare:
        assert (await bare.put("/admin/revisions/r1/engines/text", json=body)).status_code == 401
        assert (await bare.get("/admin/shapes")).status_code == 401


async def test_an_engine_that_fails_while_it_is_warmed_is_closed_and_not_swapped_in(
    start_gateway: StartGateway, toy: t.Toy, tmp_path: Path
) -> None:
    opened: list[t.FunctionEngine] = []

    def load_function(sealed: bytes, path: Path) -> t.FunctionEngine:
        opened.append(t.FunctionEngine(load(EngineManifest, sealed), t.FUNCTIONS[path.read_text()]))
        return opened[-1]

    def warm(engine: Any) -> None:
        if len(engine.manifest.spec.profiles) > 1:
            raise MemoryError("no room for the largest shape")

    async with (
        start_gateway(load_engine=load_function, warm=warm) as gateway,
        clients(gateway) as (client, admin),
    ):
        body = larger(toy, tmp_path)
        refused = await admin.put("/admin/revisions/r1/engines/text", json=body)
        assert refused.status_code == 500
        assert opened[-1].closed
        assert not any(engine.closed for engine in opened[:-1])
        assert (await infer(client, 1, 3)).status_code == 200


async def test_shapes_outside_are_asked_for_once(
    start_gateway: StartGateway, toy: t.Toy, tmp_path: Path
) -> None:
    queue = FolderQueue(tmp_path / "builds", SystemClock())
    filing = BackgroundFiling(queue)
    async with start_gateway(filing=filing) as gateway, clients(gateway) as (client, admin):
        for tokens in (40, 41, 48, 4000):
            assert (await infer(client, 1, tokens)).status_code == 400
        await until(lambda: bool(queue.builds()))
        (build,) = queue.builds()
        assert build.request.service == t.SERVICE
        assert build.request.bundle == toy.digest
        assert (build.request.encoder, build.request.sizes) == (
            "text", (("batch", 1), ("tokens", 48))
        )  # fmt: skip
        shapes = {item["encoder"]: item for item in (await admin.get("/admin/shapes")).json()}
        assert shapes["text"]["counts"] == {"filed": 1, "beyond": 1}
        metrics = (await client.get("/metrics")).text
        for outcome in ("filed", "beyond"):
            line = f'modalgate_shape_requests_total{{encoder="text",outcome="{outcome}"}} 1.0'
            assert line in metrics
    filing.close()


async def test_an_engine_beside_the_bundle_serves_after_a_start(
    start_gateway: StartGateway, toy: t.Toy, tmp_path: Path
) -> None:
    files = larger(toy, tmp_path)

    def find(revision: str, encoder: str) -> Any:
        assert revision == "r1"
        found = Path(files["manifest"]).read_bytes(), Path(files["engine"])
        return found if encoder == "text" else None

    async with start_gateway(find_replacement=find) as gateway, clients(gateway) as (client, _):
        assert (await infer(client, 2, 40)).status_code == 200
    larger(toy, tmp_path, state=EngineState.BUILT)  # it does not hold any more
    async with start_gateway(find_replacement=find) as gateway, clients(gateway) as (client, _):
        assert (await infer(client, 2, 40)).status_code == 400
        assert (await infer(client, 2, 10)).status_code == 200


async def test_requests_go_on_while_engines_change(
    client: httpx.AsyncClient, admin: httpx.AsyncClient, toy: t.Toy, tmp_path: Path
) -> None:
    statuses: list[int] = []
    stop = asyncio.Event()

    async def load_it(tokens: int) -> None:
        while not stop.is_set():
            statuses.append((await infer(client, 2, tokens)).status_code)

    running = [asyncio.create_task(load_it(tokens)) for tokens in (1, 5, 13, 16)]
    for number in range(10):
        body = larger(toy, tmp_path, size_bytes=number)
        swapped = await admin.put("/admin/revisions/r1/engines/text", json=body)
        assert swapped.status_code == 200, swapped.text
        seen = len(statuses)
        await until(lambda seen=seen: len(statuses) > seen + 8)  # type: ignore[misc]
    stop.set()
    await asyncio.gather(*running)
    assert set(statuses) == {200}
