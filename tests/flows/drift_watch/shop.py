"""A live service without its release: records, a reference window, and live windows to watch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from flows.drift_watch.look import Looked, look
from flows.drift_watch.watched import Watched
from flows.home import Home
from flows.release.register import keep_record
from flows.release.values import ReleaseRecord
from flows.workspace import Workspace
from tests.infra.manual_clock import ManualClock
from tests.services.gateway.toy import SERVICE, make_toy
from tests.validators.contracts.smallest import SMALLEST
from validators.contracts.alerts import Alert
from validators.contracts.bundle import Bundle
from validators.contracts.dataset import Dataset, Media, Sample
from validators.contracts.digest import Digest, canonical_json, digest_bytes
from validators.contracts.documents import load
from validators.contracts.errors import ModalgateError
from validators.contracts.origin import VectorOrigin
from validators.contracts.pipeline_file import parse_pipeline
from validators.contracts.ports import ModelVersion
from validators.drift.columns import Categories, Embedded, Scalars
from validators.drift.window import DriftWindow
from validators.drift.window_file import write_window
from validators.lineage.record import RECORD_FORMAT, LineageRecord
from validators.lineage.summary import summarise

REFERENCE_ROWS = 300
DIMENSIONS = 8


class Sink:
    """Keeps what it is told, unless it is away."""

    name = "sink"

    def __init__(self) -> None:
        self.told: list[Alert] = []
        self.failure: ModalgateError | None = None

    def deliver(self, alert: Alert) -> None:
        if self.failure is not None:
            raise self.failure
        self.told.append(alert)

    @property
    def states(self) -> list[str]:
        return [alert.state.value for alert in self.told]


class Shop:
    """A service of the toy's bundle, whose requests are drawn by chance."""

    def __init__(self, folder: Path, **alerts: Any) -> None:
        self.clock = ManualClock()
        self.workspace = Workspace(Home(folder / "home"))
        self.workspace.__dict__["clock"] = self.clock
        self.sink = Sink()
        self.chance = np.random.default_rng(11)
        self._folder = folder
        self._alerts = alerts
        self.version = self.release("1")

    def release(self, number: str, **changes: Any) -> ModelVersion:
        """One more version, live from now on."""
        toy = make_toy(self._folder / f"toy-{number}", **changes)
        store = self.workspace.store
        self.bundle = load(Bundle, (toy.path / "bundle.json").read_bytes())
        digest = store.put(self.bundle.document())
        document = {**SMALLEST, "service": SERVICE, "alerts": self._alerts}
        pipeline = parse_pipeline(json.dumps(document))
        self.reference = self.draw(REFERENCE_ROWS)
        lineage = LineageRecord(RECORD_FORMAT, summarise(training()))
        nothing = digest_bytes(b"")
        keep_record(
            self.workspace,
            ReleaseRecord(
                bundle=digest, identity=nothing, baseline=None,
                pipeline=store.put(canonical_json(pipeline)), dataset=nothing,
                lineage=store.put(canonical_json(lineage)),
                window=store.put(write_window(self.reference)), probes=nothing,
                certificate=nothing, verdicts=nothing,
            ),
        )  # fmt: skip
        self.version = ModelVersion(SERVICE, number, digest, 0, {}, ("champion",))
        return self.version

    def draw(
        self, rows: int, *, shift: float = 0.0, audio: int = 0, tags: str | None = None,
        origin: VectorOrigin | None = None, some: tuple[str, ...] = ("audio", "text"),
    ) -> DriftWindow:  # fmt: skip
        """A window of requests with pictures, the first few with speech; `shift` in deviations.

        The first has a medium of each of `some`.
        """
        chance = self.chance
        loud = chance.normal(-20, 3, rows)
        if rows != REFERENCE_ROWS:
            loud[audio:] = np.nan
        vectors = chance.normal(0, 1, (rows, DIMENSIONS)).astype(np.float32) + np.float32(shift)
        now_ms = self.clock.wall_ns() // 1_000_000
        return DriftWindow(
            rows=rows,
            descriptors={
                "image.brightness": Scalars.of(chance.normal(120 + 20 * shift, 20, rows)),
                "audio.rms_db": Scalars.of(loud),
            },
            categories={
                "presence.image": Categories.of(["yes"] * rows),
                **{f"presence.{n}": Categories.of(["yes"] + ["no"] * (rows - 1)) for n in some},
            },
            embeddings={
                "image": Embedded(vectors, np.arange(rows), "own", origin or self.origin)
            },
            tags={} if tags is None else {"channels": Categories.of([tags] * rows)},
            from_ms=now_ms - 1000, until_ms=now_ms,
        )  # fmt: skip

    @property
    def origin(self) -> VectorOrigin:
        item = self.bundle.encoder("image")
        return VectorOrigin(item.fingerprint, self.bundle.deployed_engine("image").engine)

    def record(self, window: DriftWindow, bundle: Digest | None = None) -> Digest:
        """As a gateway writes it down; a second goes by."""
        self.clock.advance(1)
        entry = self.workspace.windows(SERVICE).put(
            bundle or self.bundle.digest, write_window(window)
        )
        return entry.window

    def watched(self) -> Watched:
        watched = Watched(self.workspace, self.version)
        watched.__dict__["sinks"] = [self.sink]
        return watched

    def look(self, minutes: float = 15) -> Looked:
        self.clock.advance(minutes * 60)
        return look(self.watched())


def training() -> Dataset:
    tags = (("channels", "RGB"), ("lighting", "day"), ("sensor", "camera"), ("source", "studio"))
    media = (
        Media("audio", digest_bytes(b"a"), "audio/wav"),
        Media("image", digest_bytes(b"i"), "image/png", (("brightness", 120.0),)),
        Media("text", digest_bytes(b"t"), "text/plain"),
    )
    return Dataset(tuple(Sample(f"s{n}", media, tags) for n in range(60)))
