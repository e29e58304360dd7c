"""Scenes that two tracks see: moments at which something happens, as courses of activity."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from services.ingest.timebase.activity import Activity, on_grid, rise

Course = npt.NDArray[np.float64]
Lag = Callable[[Course], Course]


def in_step(moments_s: Course) -> Course:
    return np.zeros_like(moments_s)


def video_of(rng: np.random.Generator, moments_s: Course, sizes: Course, span_s: float) -> Activity:
    """30 frames a second: noise, slow motion, and a burst that dies away at each moment."""
    times = np.arange(int(span_s * 30)) / 30
    motion = np.abs(rng.normal(0, 0.3, len(times))) + 0.5
    for moment, size in zip(moments_s, sizes, strict=True):
        first = int(np.ceil(moment * 30 - 1e-6))
        length = min(4, max(0, len(times) - first))
        motion[first : first + length] += 3 * size * 0.6 ** np.arange(length)
    stamps = np.rint(times * 1e9).astype(np.int64)
    return Activity(stamps, rise(motion, stamps))


def audio_of(rng: np.random.Generator, moments_s: Course, sizes: Course, span_s: float) -> Activity:
    """Levels of 10 ms each in dB: noise, and an attack with decay at each moment."""
    times = np.arange(int(span_s * 100)) / 100
    levels = -50 + rng.normal(0, 1, len(times))
    for moment, size in zip(moments_s, sizes, strict=True):
        first = max(0, int(moment * 100 + 1e-6))
        after = np.maximum(times[first:] - moment, 0)
        levels[first:] = np.maximum(levels[first:], -50 + 20 * size * np.exp(-after / 0.3))
    stamps = np.rint((times + 0.005) * 1e9).astype(np.int64)
    return Activity(stamps, rise(levels, stamps))


def scene(
    seed: int, span_s: float, *, lag: Lag = in_step, related: bool = True, rate_hz: float = 0.7
) -> tuple[Activity, Activity]:
    """A video and an audio track that see 70 % each of the same moments, or of two others.

    `lag` is by how many seconds the audio is behind at a moment.
    """
    rng = np.random.default_rng(seed)

    def happen() -> tuple[Course, Course]:
        count = rng.poisson(rate_hz * span_s)
        moments = np.sort(rng.uniform(0, span_s, count))
        return np.rint(moments * 30) / 30, rng.lognormal(0, 0.6, count)

    moments, sizes = happen()
    heard, heard_sizes = (moments, sizes) if related else happen()
    seen_too, heard_too = rng.random(len(moments)) < 0.7, rng.random(len(heard)) < 0.7
    heard, heard_sizes = heard[heard_too], heard_sizes[heard_too]
    return (
        video_of(rng, moments[seen_too], sizes[seen_too], span_s),
        audio_of(rng, heard + lag(heard), heard_sizes, span_s),
    )


def courses(pair: tuple[Activity, Activity], span_s: float) -> tuple[Course, Course]:
    first, second = (on_grid(item, 0, int(span_s * 100)) for item in pair)
    return first, second
