"""What a gateway records of live requests, and what it never does."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from infra.clocks import SystemClock
from services.gateway import recording
from services.gateway.branches import BranchResult
from services.gateway.gateway import Gateway
from services.gateway.recording import MIN_ROWS, LiveWindow, Recorder
from services.gateway.requests import Call, Medium, MultimodalRequest
from services.gateway.revision import LoadedRevision, load_revision
from services.gateway.settings import GatewaySettings
from services.ingest.folder import read_audio, read_image, read_text
from tests.infra.manual_clock import ManualClock
from tests.services.gateway.conftest import QUICK, TOKEN, StartGateway
from tests.services.gateway.toy import make_toy, picture, tone, wav
from validators.contracts.origin import VectorOrigin
from validators.drift.columns import OTHER
from validators.drift.window_file import read_window, write_window
from validators.rollout.probe import HEADER, mark_probe
from validators.watch.plan import KnownTag, RecordingPlan

PROBE_TEXT = b"something red"
PLAN = RecordingPlan(share=1.0, tags=(KnownTag("lighting", ("day", "night")),))
RECORDING = GatewaySettings(
    drain_grace_s=0.0, drain_idle_s=0.0, drain_timeout_s=10.0, record=True
)  # fmt: skip


@contextlib.asynccontextmanager
async def recorded(
    start: StartGateway, folder: Path, plan: RecordingPlan | None = PLAN
) -> AsyncIterator[tuple[Gateway, httpx.AsyncClient, list[LiveWindow]]]:
    """A gateway whose toy may be recorded; the windows are there once it is left."""
    windows: list[LiveWindow] = []
    async with (
        start(settings=RECORDING, served=make_toy(folder / "recorded", plan=plan)) as gateway,
        httpx.AsyncClient(base_url=gateway.rest_url, timeout=60) as client,
    ):
        yield gateway, client, windows
        assert gateway.recorder is not None
        await asyncio.to_thread(gateway.recorder.settle)
        windows += gateway.recorder.take(everything=True)


def sent(colour: str, **fields: str) -> dict[str, Any]:
    files = {"image": ("a.png", picture(colour), "image/png")}
    return {"files": files, "data": {"text": f"something {colour}", **fields}}


async def test_a_request_leaves_vectors_and_measures_and_nothing_of_itself(
    start_gateway: StartGateway, tmp_path: Path
) -> None:
    async with recorded(start_gateway, tmp_path) as (gateway, client, windows):
        headers = {"x-request-id": "request-of-ada", "x-session-id": "session-of-ada"}
        for _ in range(2):
            metadata = '{"lighting": "day", "name": "Ada Lovelace"}'
            body = sent("red", metadata=metadata)
            assert (await client.post("/v1/answer", headers=headers, **body)).status_code == 200
        other = sent("blue", metadata='{"lighting": "at Ada\'s"}')
        assert (await client.post("/v1/answer", **other)).status_code == 200
        text = (await client.get("/metrics")).text
        assert "modalgate_recorded_requests_total" in text
        revision = gateway.revisions.all()[0].revision
    (live,) = windows
    window = live.window
    assert live.bundle == revision.digest
    assert (window.rows, window.seen) == (3, 3)
    assert window.times_ms is None
    assert window.from_ms is not None and window.until_ms is not None
    assert window.tags["lighting"].counts() == {OTHER: 1, "day": 2}
    assert window.recordings is not None
    assert sorted(np.bincount(window.recordings)) == [1, 2], "two of one session, one without"
    image = window.embeddings["image"]
    assert (image.vectors.shape, image.space) == ((3, 3), "image.features")
    assert image.origin == revision.encoders["image"].origin
    data = write_window(window)
    for secret in (b"Ada", b"something", b"session", b"request", b"PNG"):
        assert secret not in data


async def test_measures_are_those_of_ingest(start_gateway: StartGateway, tmp_path: Path) -> None:
    sound = wav(tone("green"))
    async with recorded(start_gateway, tmp_path) as (_, client, windows):
        files = {"image": ("a", picture("green"), "image/png"), "audio": ("b", sound, "audio/wav")}
        data = {"text": "green\u200b"}
        assert (await client.post("/v1/answer", files=files, data=data)).status_code == 200
    (live,) = windows
    expected = {
        f"{modality}.{name}": value
        for modality, normal in (
            ("image", read_image(picture("green"))), ("audio", read_audio(sound)),
            ("text", read_text("green\u200b")),
        )
        for name, value in normal.measures
    }  # fmt: skip
    found = {name: column.values[0] for name, column in live.window.descriptors.items()}
    assert found == expected
    assert {n: c.counts() for n, c in live.window.categories.items()} == {
        f"presence.{name}": {"yes": 1} for name in ("audio", "image", "text")
    }
    assert set(live.window.embeddings) == {"image", "text"}, "speech goes on as text"


@pytest.mark.parametrize("plan", [None, RecordingPlan()])
async def test_a_bundle_that_allows_nothing_is_not_recorded(
    start_gateway: StartGateway, tmp_path: Path, plan: RecordingPlan | None
) -> None:
    async with recorded(start_gateway, tmp_path, plan) as (_, client, windows):
        assert (await client.post("/v1/answer", **sent("red"))).status_code == 200
    assert windows == []


@pytest.mark.parametrize(("token", "of", "rows"), [
    (TOKEN, PROBE_TEXT, 1), ("another token", PROBE_TEXT, 2), (TOKEN, b"another body", 2),
])  # fmt: skip
async def test_the_platform_s_own_probe_is_left_out_and_no_one_else_s_request(
    start_gateway: StartGateway, tmp_path: Path, token: str, of: bytes, rows: int
) -> None:
    async with recorded(start_gateway, tmp_path) as (_, client, windows):
        plain = {"content-type": "text/plain"}
        for headers in ({HEADER: mark_probe(token, of)}, {}):
            response = await client.post(
                "/v1/answer", content=PROBE_TEXT, headers={**plain, **headers}
            )
            assert response.status_code == 200
    assert sum(live.window.rows for live in windows) == rows


async def test_a_gateway_that_was_not_told_to_records_nothing(
    start_gateway: StartGateway, tmp_path: Path
) -> None:
    toy = make_toy(tmp_path / "recorded", plan=PLAN)
    async with start_gateway(settings=QUICK, served=toy) as gateway:
        assert gateway.recorder is None
        assert gateway.handlers.record is None


async def test_a_failed_request_is_not_recorded(
    start_gateway: StartGateway, tmp_path: Path
) -> None:
    async with recorded(start_gateway, tmp_path) as (_, client, windows):
        bad = {"image": ("a.png", b"no picture", "image/png")}
        assert (await client.post("/v1/answer", files=bad)).status_code == 422
    assert windows == []


# --- the recorder by itself ----------------------------------------------------------------------


@pytest.fixture
def revision(tmp_path: Path) -> LoadedRevision:
    toy = make_toy(tmp_path / "own", plan=PLAN)
    return load_revision("r1", toy.path, toy.loaders())


@pytest.fixture
def outcomes() -> list[str]:
    return []


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def recorder(clock: ManualClock, outcomes: list[str]) -> Iterator[Recorder]:
    made = Recorder(clock, outcomes.append, max_rows=100, seed=5)
    yield made
    made.close()


def offer(
    recorder: Recorder, revision: LoadedRevision, *, origin: VectorOrigin | None = None,
    picture_of: bytes = picture("red"), session: str | None = None,
) -> None:  # fmt: skip
    made = origin or revision.encoders["image"].origin
    features = np.array([1.0, 0.0, 0.0], np.float32)
    result = BranchResult(features, 1.0, {"image": made}, features=features)
    request = MultimodalRequest((("image", (Medium("image/png", picture_of),)),))
    recorder.offer(revision, Call("r", 0, session_id=session), request, {"image": result})


def test_a_window_waits_for_rows_enough_or_for_an_hour(
    recorder: Recorder, revision: LoadedRevision, clock: ManualClock
) -> None:
    for _ in range(MIN_ROWS - 1):
        offer(recorder, revision)
    recorder.settle()
    assert recorder.take() == []
    offer(recorder, revision)
    recorder.settle()
    assert [item.window.rows for item in recorder.take()] == [MIN_ROWS]
    offer(recorder, revision)
    recorder.settle()
    assert recorder.take() == []
    clock.advance(3601)
    assert [item.window.rows for item in recorder.take()] == [1]


def test_a_flood_costs_few_measurements_and_bounded_memory(
    recorder: Recorder, revision: LoadedRevision, outcomes: list[str]
) -> None:
    """100 000 requests here, with a window of 100 rows: of 10^6 it would be 230 more."""
    for number in range(100_000):
        offer(recorder, revision, session=f"s{number}")
    recorder.settle()
    (live,) = recorder.take()
    assert live.window.rows <= 100
    assert live.window.rows + outcomes.count("dropped") >= 100
    assert outcomes.count("kept") <= 100 * (1 + np.log(1000)) * 1.2
    assert live.window.seen == 100_000 - outcomes.count("dropped")


def test_vectors_of_two_engines_are_two_windows(
    recorder: Recorder, revision: LoadedRevision
) -> None:
    own = revision.encoders["image"].origin
    other = VectorOrigin(own.encoder, revision.digest)
    for origin in (own, own, other):
        offer(recorder, revision, origin=origin)
    recorder.settle()
    found = [live.window.embeddings["image"].origin for live in recorder.take(everything=True)]
    assert found == [own, other]


def test_what_cannot_be_measured_is_counted_and_left_out(
    recorder: Recorder, revision: LoadedRevision, outcomes: list[str]
) -> None:
    offer(recorder, revision, picture_of=b"no picture")
    offer(recorder, revision)
    recorder.settle()
    (live,) = recorder.take(everything=True)
    assert (live.window.rows, live.window.seen) == (1, 1)
    assert outcomes == ["unmeasured", "kept"]


def test_a_recorder_that_is_busy_lets_requests_go(
    recorder: Recorder, revision: LoadedRevision, outcomes: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    let_on = threading.Event()

    def measure(name: str, medium: Medium) -> tuple[()]:
        assert let_on.wait(60)
        return ()

    monkeypatch.setattr(recording, "measure_medium", measure)
    for _ in range(recording.MAX_PENDING + 10):
        offer(recorder, revision)
    assert outcomes.count("dropped") >= 9
    let_on.set()
    recorder.settle()
    (live,) = recorder.take(everything=True)
    assert live.window.rows == live.window.seen >= recording.MAX_PENDING


def test_media_that_wait_are_bounded_in_bytes(
    recorder: Recorder, revision: LoadedRevision, outcomes: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(recording, "MAX_PENDING_BYTES", 10)
    offer(recorder, revision)
    assert outcomes == ["dropped"]


def test_no_error_of_recording_reaches_a_request(
    recorder: Recorder, revision: LoadedRevision, outcomes: list[str]
) -> None:
    recorder.offer(revision, Call("r", 0), None, {})  # type: ignore[arg-type]
    assert outcomes == ["unmeasured"]


def test_a_window_that_could_not_be_written_is_handed_out_again(
    recorder: Recorder, revision: LoadedRevision, outcomes: list[str]
) -> None:
    offer(recorder, revision)
    recorder.settle()
    (live,) = recorder.take(everything=True)
    for _ in range(recording.MAX_UNWRITTEN + 3):
        recorder.give_back(live)
    assert outcomes.count("unwritten") == 3
    assert len(recorder.take()) == recording.MAX_UNWRITTEN


def test_a_clock_that_goes_back_makes_no_window_of_negative_length(
    recorder: Recorder, revision: LoadedRevision, clock: ManualClock
) -> None:
    offer(recorder, revision)
    recorder.settle()
    clock.advance(-100)
    (live,) = recorder.take(everything=True)
    assert live.window.from_ms == live.window.until_ms
    assert read_window(write_window(live.window)).rows == 1


@pytest.mark.slow
@pytest.mark.parametrize(("side", "share"), [(16, 1.0), (800, 0.1), (800, 1.0)])
async def test_recording_adds_little_to_a_request(
    start_gateway: StartGateway, tmp_path: Path, side: int, share: float
) -> None:
    """Prints the ratio; machines are too unlike for a limit."""
    clock = SystemClock()
    took: dict[bool, list[int]] = {True: [], False: []}
    toy = make_toy(tmp_path / "recorded", plan=RecordingPlan(share=share))
    body = {"files": {"image": ("a.jpg", picture("red", "JPEG", side), "image/jpeg")}}
    async with (
        start_gateway(settings=RECORDING, served=toy) as on,
        start_gateway(settings=QUICK, served=toy) as off,
        httpx.AsyncClient(base_url=on.rest_url, timeout=60) as client,
        httpx.AsyncClient(base_url=off.rest_url, timeout=60) as bare,
    ):
        assert on.recorder is not None
        for block in range(9):  # in blocks: what is measured meanwhile slows the next of its own
            for records, session in ((True, client), (False, bare)):
                for _ in range(10):
                    started_ns = clock.monotonic_ns()
                    assert (await session.post("/v1/answer", **body)).status_code == 200  # type: ignore[arg-type]
                    if block:
                        took[records].append(clock.monotonic_ns() - started_ns)
                await asyncio.to_thread(on.recorder.settle)
    with_ms, without_ms = (float(np.median(took[records])) / 1e6 for records in (True, False))
    print(
        f"{side} px, share {share}: recording {with_ms:.2f} ms, not {without_ms:.2f} ms, ", end=""
    )
    print(f"ratio {with_ms / without_ms:.3f}")
