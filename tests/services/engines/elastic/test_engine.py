from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.engines.elastic.engine import ElasticEngine, OutsideProfiles, Served
from services.engines.elastic.plan import ElasticPolicy
from services.engines.elastic.warming import warm
from services.engines.tensors import Arrays
from tests.services.engines.elastic.machines import (
    LARGE,
    SMALL,
    CountingEngine,
    profile,
    real_engine,
    request,
)
from tests.services.engines.profiles.model import make_runner
from validators.contracts.engine import Outside
from validators.contracts.errors import BadInput, Refused, TooLarge, Unavailable

REFERENCE = make_runner()
TOLERANCE = 1e-5
"""Largest absolute difference of a padded answer from the unpadded one; values are about 1."""
EVERY_WAY = ElasticPolicy(outside=tuple(Outside), max_padding=1e9)


@pytest.fixture(scope="module", params=["onnxruntime", "openvino"])
def real(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ElasticEngine]:
    folder = tmp_path_factory.mktemp(request.param)
    engine = ElasticEngine(real_engine(request.param, SMALL, folder), EVERY_WAY)
    yield engine
    engine.close()


def assert_same(served: Served, feeds: Arrays) -> None:
    """The answer equals that of the model run at the request's own shape."""
    wanted = REFERENCE(feeds)
    assert {name: array.shape for name, array in served.outputs.items()} == {
        name: array.shape for name, array in wanted.items()
    }
    np.testing.assert_allclose(
        served.outputs["embedding"], wanted["embedding"], atol=TOLERANCE, rtol=0
    )
    kept = feeds["mask"].astype(bool)
    np.testing.assert_allclose(
        served.outputs["features"][kept], wanted["features"][kept], atol=TOLERANCE, rtol=0
    )


@given(seed=st.integers(0, 99), batch=st.integers(1, 11), tokens=st.integers(1, 16))
@settings(deadline=None, max_examples=60)
def test_every_shape_is_answered_as_if_it_had_run_alone(
    real: ElasticEngine, seed: int, batch: int, tokens: int
) -> None:
    feeds = request(seed, batch, tokens)
    served = real.serve(feeds)
    assert_same(served, feeds)
    assert served.way == ("split" if batch > 4 else "padded" if tokens < 2 else "inside")
    assert 0 <= served.padded_share < 1
    assert served.degraded is None


@given(seed=st.integers(0, 99), batch=st.integers(1, 11), tokens=st.integers(17, 40))
@settings(deadline=None, max_examples=30)
def test_a_cut_answer_is_that_of_the_first_tokens_and_says_so(
    real: ElasticEngine, seed: int, batch: int, tokens: int
) -> None:
    feeds = request(seed, batch, tokens)
    served = real.serve(feeds)
    assert served.way == "cut"
    assert served.degraded is not None and "tokens to its first 16" in served.degraded
    assert_same(served, {name: array[:, :16] for name, array in feeds.items()})
    with pytest.raises(OutsideProfiles, match="tokens"):
        real.run(feeds)  # cannot say that it is degraded, so it does not cut


def test_a_request_runs_at_its_profiles_largest_shape_unless_that_pads_much() -> None:
    inner = CountingEngine()
    engine = ElasticEngine(inner, ElasticPolicy(max_padding=0.25))
    shares = [engine.serve(request(1, *shape)).padded_share for shape in [(1, 7), (1, 5), (1, 8)]]
    assert inner.shapes == [(1, 8), (1, 5), (1, 8)]
    assert shares == [pytest.approx(1 / 8), 0, 0]


@pytest.mark.parametrize(
    ("outside", "batch", "tokens", "fits"),
    [
        ((), 5, 8, "batch 4"),
        ((Outside.PAD, Outside.SPLIT), 2, 17, "tokens 16"),
        ((Outside.CUT,), 5, 40, "batch 4"),
    ],
)
def test_what_no_way_helps_is_refused_with_what_would_fit(
    outside: tuple[Outside, ...], batch: int, tokens: int, fits: str
) -> None:
    inner = CountingEngine()
    with pytest.raises(OutsideProfiles) as caught:
        ElasticEngine(inner, ElasticPolicy(outside)).serve(request(1, batch, tokens))
    assert fits in caught.value.remedy
    assert inner.shapes == []


@pytest.mark.parametrize("shape", [(1, 4), (2, 40), (9, 4)])
def test_what_an_engine_must_not_see_is_refused_at_every_shape(shape: tuple[int, int]) -> None:
    inner = CountingEngine()
    engine = ElasticEngine(inner, EVERY_WAY)
    good = request(1, *shape)
    over, below = good["ids"].copy(), good["ids"].copy()
    over[0, -1], below[-1, 0] = 50, -1
    for bad in (
        {**good, "ids": over}, {**good, "ids": below}, {**good, "ids": good["ids"].astype("i4")},
        {"ids": good["ids"]}, {**good, "more": good["ids"]}, {**good, "mask": good["mask"][:, :3]},
    ):  # fmt: skip
        with pytest.raises(BadInput):
            engine.serve(bad)
    assert inner.shapes == []
    recorded = engine.recorded()
    assert recorded is not None and recorded.total == 0


def test_more_numbers_than_allowed_are_refused_unread() -> None:
    engine = ElasticEngine(CountingEngine(), ElasticPolicy(tuple(Outside), max_elements=100))
    with pytest.raises(TooLarge):
        engine.serve(request(1, 6, 10))


def test_shapes_are_counted_in_windows_and_together() -> None:
    engine = ElasticEngine(CountingEngine(), EVERY_WAY)
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda at: engine.serve(request(at, 1 + at % 3, 5)), range(300)):
            pass
    window = engine.take_window()
    assert window is not None and [item.count for item in window.counts] == [100, 100, 100]
    engine.serve(request(1, 1, 5))
    engine.give_back(window)
    again, everything = engine.take_window(), engine.recorded()
    assert again is not None and everything is not None
    assert again == everything
    assert everything.total == 301


# -- swaps ------------------------------------------------------------------------------------


def test_an_engine_is_replaced_fifty_times_under_fire() -> None:
    first = CountingEngine()
    engine = ElasticEngine(first, EVERY_WAY)
    made, failures, answered = [first], [], [0] * 8
    stop = threading.Event()

    def hammer(number: int) -> None:
        draw = np.random.default_rng(number)
        while not stop.is_set():
            feeds = request(int(draw.integers(1e6)), *map(int, draw.integers(1, 12, 2)))
            try:
                served = engine.serve(feeds)
                assert (served.outputs["features"][:, :, 0] == feeds["ids"]).all()
                answered[number] += 1
            except Exception as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for number in range(50):
        before = sum(answered)
        made.append(CountingEngine(LARGE if number % 2 else SMALL + LARGE[2:], f"swap {number}"))
        engine.swap(made[-1])
        while sum(answered) < before + 8 and not failures:
            stop.wait(0.001)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [item.closed for item in made] == [1] * 50 + [0]
    assert sum(item.used_after_close + item.closed_while_used for item in made) == 0
    assert all(item.shapes for item in made)
    engine.close()
    engine.close()
    assert made[-1].closed == 1
    with pytest.raises(Unavailable):
        engine.serve(request(1, 1, 4))
    assert engine.counts() == {"swaps": 50}


def test_a_call_that_began_ends_on_the_old_engine_which_then_closes() -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow(CountingEngine):
        def run(self, feeds: Arrays) -> Arrays:  # type: ignore[override]
            entered.set()
            assert leave.wait(60)
            return super().run(feeds)

    old, new = Slow(), CountingEngine(LARGE, "two")
    engine = ElasticEngine(old, EVERY_WAY)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(engine.serve, request(1, 1, 4))
        assert entered.wait(60)
        engine.swap(new)
        assert old.closed == 0
        assert engine.serve(request(1, 1, 4)).engine == new.manifest.engine
        leave.set()
        assert call.result(60).engine == old.manifest.engine
    assert (old.closed, new.closed) == (1, 0)
    assert engine.siblings == {frozenset((old.manifest.engine, new.manifest.engine))}


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_real_engine_takes_over_and_covers_more(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("swap")
    engine = ElasticEngine(real_engine(name, SMALL, folder))
    feeds = request(3, 6, 30)
    with pytest.raises(OutsideProfiles):
        engine.serve(feeds)
    new = real_engine(name, LARGE, folder)
    warm(new)
    engine.swap(new)
    assert_same(engine.serve(feeds), feeds)
    engine.close()


def test_what_is_no_replacement_changes_nothing() -> None:
    old = CountingEngine()
    engine = ElasticEngine(old)
    with pytest.raises(Refused):
        engine.swap(CountingEngine(encoder="image"))
    assert engine.serve(request(1, 1, 4)).engine == old.manifest.engine
    assert engine.siblings == frozenset()
    engine.close()
    late = CountingEngine(LARGE, "late")
    with pytest.raises(Unavailable):
        engine.swap(late)
    assert late.closed == 0


def test_warming_runs_every_corner_once() -> None:
    engine = CountingEngine(SMALL)
    warm(engine)
    assert engine.shapes == [(1, 2), (1, 8), (1, 2), (1, 12), (4, 16)]


def test_an_engine_that_fails_at_a_corner_is_not_warmed() -> None:
    with pytest.raises(Unavailable):
        warm(_Failing((profile((1, 2), (4, 16)),)))


class _Failing(CountingEngine):
    def run(self, feeds: Arrays) -> Arrays:  # type: ignore[override]
        if feeds["ids"].shape == (4, 16):
            raise Unavailable("no memory for this shape")
        return super().run(feeds)
