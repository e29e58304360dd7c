from __future__ import annotations

import numpy as np
import pytest

from services.ingest.measures import measure_audio
from services.ingest.media.anomalies import MAX_KEPT, AnomalyLog
from services.ingest.media.levels import Levels, measure_level
from tests.services.ingest.media.recordings import tone

RATE = 16_000


def stereo(samples: np.ndarray) -> np.ndarray:
    return np.column_stack([samples, samples])


def add_all(blocks: list[np.ndarray]) -> tuple[Levels, AnomalyLog]:
    log = AnomalyLog()
    levels = Levels(log)
    for number, block in enumerate(blocks):
        levels.add(number, 100.0 * number, 100.0, block)
    levels.end_silence()
    return levels, log


def test_chunks_add_up_to_the_measures_of_the_whole() -> None:
    samples = np.clip(tone(2, RATE, level=1.3), -1, 1)
    levels, _ = add_all(np.split(samples[:, None], 20))
    whole, parts = dict(measure_audio(samples, RATE)), dict(levels.measures())
    assert parts["rms_db"] == pytest.approx(whole["rms_db"], abs=1e-4)
    assert parts["clipped_share"] == pytest.approx(whole["clipped_share"], abs=1e-6)
    assert parts["peak_db"] == pytest.approx(0, abs=1e-3)


def test_clipping_in_one_channel_is_seen_although_their_mean_is_not_clipped() -> None:
    loud = np.clip(tone(0.1, RATE, level=2), -1, 1)
    block = np.column_stack([loud, np.zeros_like(loud)])
    _, log = add_all([block])
    assert log.counts == (("clipped", 1),)
    assert measure_level(block).clipped_share > 0.2


def test_a_single_peak_is_no_clipping() -> None:
    block = stereo(tone(0.1, RATE))
    block[7] = 1
    assert add_all([block])[1].counts == ()


@pytest.mark.parametrize(("blocks", "reported"), [(9, ()), (10, (("silent", 1),))])
def test_a_silence_is_reported_from_a_second_on(blocks: int, reported: tuple[object, ...]) -> None:
    sound, quiet = stereo(tone(0.1, RATE)), stereo(tone(0.1, RATE, level=1e-4))
    levels, log = add_all([sound, *[quiet] * blocks, sound])
    assert log.counts == reported
    assert dict(levels.measures())["silent_share"] == pytest.approx(blocks / (blocks + 2), abs=1e-6)


def test_a_silence_names_where_it_began_and_how_long_it_was() -> None:
    sound, quiet = stereo(tone(0.1, RATE)), stereo(np.zeros(1600, dtype=np.float32))
    _, log = add_all([sound] * 3 + [quiet] * 15)
    (found,) = log.kept
    assert (found.index, found.ts_ms, found.detail) == (3, 300.0, "1500 ms")


def test_a_code_that_repeats_itself_is_counted_but_not_kept_without_end() -> None:
    loud = stereo(np.ones(1600, dtype=np.float32))
    _, log = add_all([loud] * 500)
    assert log.counts == (("clipped", 500),)
    assert len(log.kept) == MAX_KEPT
