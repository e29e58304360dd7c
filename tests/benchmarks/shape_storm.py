"""Latency while shapes change: rebuilding for each, the backend's dynamic shapes, and ours.

The reference text encoder by OpenVINO, one thread, the same requests in the same order:

- *rebuild*: a static engine for each shape, compiled on the request path when a shape comes first,
  and kept for good (the cheapest way: from the parsed model, in this process).
- *dynamic*: one engine whose bounds hold every request of the trace.
- *ours*: profiles planned from yesterday's shapes and warmed. For sequences longer than these an
  engine is asked for, built and verified in child processes at low priority while requests go on,
  warmed, and swapped in; until then they are answered from their first tokens and marked.

The sides take turns at every request, so that what else the machine does falls on all of them.
While an engine is built for ours, ours is asked alone and pays for it; the others answer the same
requests when the build is over. Ratios are medians over rounds. What ours marked as degraded is
left out of the percentiles of every side.
"""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from infra.builds.folder import FolderQueue
from infra.clocks import SystemClock
from services.children.process import Limits
from services.engines.backends.openvino.build import configuration
from services.engines.backends.openvino.probe import library
from services.engines.elastic.engine import ElasticEngine
from services.engines.elastic.filing import BackgroundFiling
from services.engines.elastic.plan import ElasticPolicy
from services.engines.elastic.warming import warm
from services.engines.export.encoder import export_encoder
from services.engines.load import load_engine
from services.engines.profiles.ahead import plan_ahead
from services.engines.profiles.assign import Sizes
from services.engines.profiles.bounds import DimBound, shape_profile
from services.engines.profiles.extension import extend_profiles
from services.engines.profiles.histogram import tally
from services.engines.specs import specify
from services.engines.workshop import EngineWorkshop
from tests.benchmarks.result import Machine, Options, Result
from tests.benchmarks.storm_traces import CHANGE, LARGEST, SHIFT, StormTrace, make_storm
from tests.flows.examples.storefront.models import FOLDER, pipeline
from tests.services.engines.conftest import Yard, make_yard
from validators.contracts.builds import BuildState, ShapeRequest
from validators.contracts.digest import Digest, digest_bytes
from validators.contracts.engine import EngineSpec, Outside, Precision, ShapeProfile
from validators.contracts.pipeline import EncoderEntry, EncoderSource, SourceKind
from validators.contracts.ports import RunningEngine

TRACES = ("queries", "reports")
SIDES = ("rebuild", "dynamic", "ours")
REQUESTS = 240
ROUNDS = 3
PROFILES = 6
WINDOWS = 4
PAUSE_S = 0.05
"""Between requests while the new engine is built, so that a trace is not over before it is."""
CEILING = (8, 256)
"""What the one dynamic engine has to hold."""

Feeds = dict[str, Any]


@dataclass(slots=True)
class Pass:
    """One side's way through a trace: milliseconds of each request, None where it failed."""

    latency_ms: list[float | None] = field(default_factory=lambda: [None] * REQUESTS)
    degraded: set[int] = field(default_factory=set)
    built: int = 1
    building_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ground:
    """The encoder, exported once."""

    root: Path
    entry: EncoderEntry
    onnx: Path

    def spec(self, yard: Yard, profiles: tuple[ShapeProfile, ...]) -> EngineSpec:
        digest = yard.store.put_file(self.onnx)
        return specify(self.entry.contract, digest, "openvino", Precision.FP32, profiles)

    def profile(self, batch: int, tokens: int) -> ShapeProfile:
        most = {"batch": batch, "tokens": tokens}
        return shape_profile(self.entry.contract.inputs, {"batch": 1, "tokens": 2}, most, most)


def run(options: Options) -> Result:
    machine = Machine.now()
    rows: list[dict[str, Any]] = []
    ratios: dict[str, float | None] = {}
    failed = 0
    with _ground() as ground:
        for trace in (make_storm(name, REQUESTS) for name in TRACES):
            rounds = []
            for number in range(max(ROUNDS, options.repeats)):
                rounds.append(_round(ground, trace))
                print(f"{trace.name}: round {number + 1} of {max(ROUNDS, options.repeats)}")
            rows += [_row(trace, name, rounds) for name in SIDES]
            ratios |= _ratios(trace, rounds)
            failed += sum(_failures(item["ours"]) for item in rounds)
    worst = {
        name: max(ratios[f"{name}_{trace}"] or 0 for trace in TRACES)
        for name in ("p99_ours_over_blocking_rebuild", "p99_ours_over_backend_dynamic")
    }
    notes = (
        "ratios: the worst of the traces; nothing was tuned on reports",
        "percentiles of every side are over the requests that ours answered in full",
    )
    return Result(
        "shape-storm", machine, tuple(rows), {**worst, "failed_requests": failed, **ratios}, notes
    )


def _round(ground: Ground, trace: StormTrace) -> dict[str, Pass]:
    first, last = round(SHIFT * REQUESTS), round(CHANGE * REQUESTS)
    requests = list(_requests(trace))
    with tempfile.TemporaryDirectory(dir=ground.root) as name:
        builder = _Builder(ground, make_yard(Path(name)), _planned(ground, trace))
        rebuild, dynamic = _Rebuild(ground), _dynamic(ground)
        done = {side: Pass() for side in SIDES}
        answers: dict[str, Callable[[Feeds], str | None]] = {
            "rebuild": rebuild, "dynamic": dynamic, "ours": builder.answer
        }  # fmt: skip

        def ask(index: int, sides: Sequence[str]) -> None:
            for turn in range(len(sides)):
                side = sides[(index + turn) % len(sides)]
                _ask(index, requests[index], answers[side], done[side])

        try:
            for index in range(REQUESTS):
                if index == last:
                    builder.wait()
                    for earlier in range(first, last):
                        ask(earlier, ("rebuild", "dynamic"))
                if first <= index < last:
                    ask(index, ("ours",))
                    time.sleep(PAUSE_S)
                else:
                    ask(index, SIDES)
        finally:
            builder.close()
        done["ours"].built, done["ours"].building_s = 1 + builder.built, builder.building_s
        done["rebuild"].built = len(rebuild.engines)
        done["rebuild"].building_s = rebuild.building_s
        return done


# -- the sides --------------------------------------------------------------------------------


class _Rebuild:
    """A static engine for each shape, compiled when the shape comes first."""

    def __init__(self, ground: Ground) -> None:
        self._ov = library()
        self._core = self._ov.Core()
        self._model = self._core.read_model(ground.onnx)
        self._settings = _settings(ground)
        self.engines: dict[tuple[int, ...], Any] = {}
        self.building_s = 0.0

    def __call__(self, feeds: Feeds) -> None:
        shape = feeds["input_ids"].shape
        if shape not in self.engines:
            started = time.perf_counter()
            static = self._model.clone()
            static.reshape({port.get_any_name(): self._ov.PartialShape(shape)
                            for port in static.inputs})  # fmt: skip
            compiled = self._core.compile_model(static, "CPU", self._settings)
            self.engines[shape] = compiled.create_infer_request()
            self.building_s += time.perf_counter() - started
        self.engines[shape].infer(feeds, share_inputs=True)


def _dynamic(ground: Ground) -> Callable[[Feeds], None]:
    ov = library()
    core = ov.Core()
    model = core.read_model(ground.onnx)
    box = ov.PartialShape([(1, CEILING[0]), (2, CEILING[1])])
    model.reshape({port.get_any_name(): box for port in model.inputs})
    request = core.compile_model(model, "CPU", _settings(ground)).create_infer_request()

    def answer(feeds: Feeds) -> None:
        request.infer(feeds, share_inputs=True)

    return answer


def _settings(ground: Ground) -> dict[str, Any]:
    """As our engines are compiled and run."""
    profiles = (ground.profile(*CEILING),)
    spec = specify(ground.entry.contract, digest_bytes(b""), "openvino", Precision.FP32, profiles)
    return configuration(spec, 1)


def _planned(ground: Ground, trace: StormTrace) -> tuple[ShapeProfile, ...]:
    dims = ("batch", "tokens")
    step = len(trace.yesterday) // WINDOWS
    windows = [
        tally(dims, [dict(zip(dims, shape, strict=True))
                     for shape in trace.yesterday[at : at + step]])
        for at in range(0, len(trace.yesterday), step)
    ]  # fmt: skip
    bounds = [DimBound("batch", 1, LARGEST[0]), DimBound("tokens", 2, LARGEST[1])]
    plan = plan_ahead(windows, PROFILES, bounds=bounds).plan
    return plan.shape_profiles(ground.entry.contract.inputs)


class _Builder:
    """Serves the planned engine, and works off what it asks for, as the build flow does."""

    def __init__(self, ground: Ground, yard: Yard, profiles: tuple[ShapeProfile, ...]) -> None:
        self._ground, self._yard = ground, yard
        self._queue = FolderQueue(yard.root / "builds", SystemClock())
        self._filing = BackgroundFiling(self._queue)
        self._workshop = EngineWorkshop(
            yard.store, yard.signer, yard.verifier, yard.root / "locks", yard.root / "work",
            limits=Limits(niceness=19),
        )  # fmt: skip
        self.built = 0
        self.building_s = 0.0
        engine = self._made(ground.spec(yard, profiles), yard.workshop)
        warm(engine)
        policy = ElasticPolicy(tuple(Outside))
        self.elastic = ElasticEngine(engine, policy, file_shape=self._file)
        self._end, self._failure = threading.Event(), list[BaseException]()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def answer(self, feeds: Feeds) -> str | None:
        return self.elastic.serve(feeds).degraded

    def wait(self) -> None:
        """Until what was asked for serves."""
        open_states = (BuildState.WAITING, BuildState.BUILDING)
        while any(build.state in open_states for build in self._queue.builds()):
            if self._failure:
                raise self._failure[0]
            time.sleep(PAUSE_S)

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        self._filing.close()
        self.elastic.close()

    def _file(self, key: Digest, sizes: Sizes, told: Callable[[str], None]) -> None:
        request = ShapeRequest("storm", digest_bytes(b"storm"), "text", key, sizes)
        self._filing.file(request, lambda _, outcome: told(outcome))

    def _work(self) -> None:
        while not self._end.wait(PAUSE_S):
            build = self._queue.take()
            if build is None:
                continue
            started = time.perf_counter()
            try:
                spec = self.elastic.manifest.spec
                inputs = self._ground.entry.contract.inputs
                profiles = extend_profiles(inputs, spec.profiles, dict(build.request.sizes))
                if profiles != spec.profiles:
                    new = self._made(dataclasses.replace(spec, profiles=profiles), self._workshop)
                    warm(new)
                    self.elastic.swap(new)
                    self.built += 1
                self._queue.settle(build.request, BuildState.DONE)
            except BaseException as error:  # told to whoever waits for the build
                self._failure.append(error)
                return
            self.building_s += time.perf_counter() - started

    def _made(self, spec: EngineSpec, workshop: EngineWorkshop) -> RunningEngine:
        contract, yard = self._ground.entry.contract, self._yard
        built = workshop.obtain(spec, spec.onnx, contract)
        source = EncoderSource(SourceKind.ONNX, self._ground.onnx.name)
        verified = workshop.verify(built, contract, source, self._ground.onnx.parent)
        assert verified.engine is not None, verified.verdict
        path = yard.root / "engine"
        yard.store.fetch(verified.engine.manifest.engine, path)
        return load_engine(verified.engine.sealed, path, verifier=yard.verifier)


# -- measuring --------------------------------------------------------------------------------


@contextmanager
def _ground() -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(prefix="modalgate-bench-") as name:
        root = Path(name)
        entry = pipeline().encoder("text")
        yield Ground(root, entry, export_encoder(entry, FOLDER, root))


def _requests(trace: StormTrace) -> Iterator[Feeds]:
    draw = np.random.default_rng(1)
    for shape in trace.shapes:
        yield {
            "input_ids": draw.integers(1, 30_000, shape),
            "attention_mask": np.ones(shape, np.int64),
        }


def _ask(index: int, feeds: Feeds, answer: Callable[[Feeds], str | None], done: Pass) -> None:
    started = time.perf_counter()
    try:
        degraded = answer(feeds)
    except Exception as error:  # a failed request is what is counted here
        print(f"request {index}: {error}")
        return
    done.latency_ms[index] = (time.perf_counter() - started) * 1e3
    if degraded is not None:
        done.degraded.add(index)


def _failures(done: Pass) -> int:
    return sum(item is None for item in done.latency_ms)


def _percentile(
    done: Pass, without: set[int], percent: float, part: tuple[float, float] = (0.0, 1.0)
) -> float:
    """Over the requests in a part of the trace, by its shares."""
    first, last = (share * len(done.latency_ms) for share in part)
    kept = [ms for at, ms in enumerate(done.latency_ms)
            if ms is not None and at not in without and first <= at < last]  # fmt: skip
    return float(np.percentile(kept, percent))


def _ratios(trace: StormTrace, rounds: list[dict[str, Pass]]) -> dict[str, float | None]:
    def over(percent: float, side: str) -> float:
        return statistics.median(
            _percentile(r["ours"], r["ours"].degraded, percent)
            / _percentile(r[side], r["ours"].degraded, percent)
            for r in rounds
        )

    return {
        f"p99_ours_over_blocking_rebuild_{trace.name}": over(99, "rebuild"),
        f"p99_ours_over_backend_dynamic_{trace.name}": over(99, "dynamic"),
        f"p50_ours_over_backend_dynamic_{trace.name}": over(50, "dynamic"),
    }


def _row(trace: StormTrace, side: str, rounds: list[dict[str, Pass]]) -> dict[str, Any]:
    def middle(percent: float, part: tuple[float, float] = (0.0, 1.0)) -> float:
        values = [_percentile(r[side], r["ours"].degraded, percent, part) for r in rounds]
        return round(statistics.median(values), 1)

    return {
        "trace": trace.name,
        "side": side,
        "rounds": len(rounds),
        "requests": len(trace.shapes),
        "shapes": len(set(trace.shapes)),
        "p50_ms": middle(50),
        "p99_ms": middle(99),
        "p99_before": middle(99, (0.0, SHIFT)),
        "p99_building": middle(99, (SHIFT, CHANGE)),
        "p99_after": middle(99, (CHANGE, 1.0)),
        "failed": sum(_failures(r[side]) for r in rounds),
        "degraded": [len(r[side].degraded) for r in rounds] if side == "ours" else "",
        "engines_built": [r[side].built for r in rounds],
        "building_s": round(statistics.median(r[side].building_s for r in rounds), 1),
    }
