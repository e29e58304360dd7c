"""Recordings whose tracks see the same moments: written by real encoders, with a known lag."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import av
import numpy as np
import numpy.typing as npt
from av.audio.stream import AudioStream

from tests.services.media_files import TAGS

FPS = 30
RATE_HZ = 16_000


def moments(seconds: float, *, seed: int = 1, rate_hz: float = 1.0) -> list[float]:
    """Irregular moments on whole frames, from half a second to half a second before the end."""
    rng = np.random.default_rng(seed)
    count = int(seconds * rate_hz)
    frames = rng.choice(np.arange(15, int(seconds * FPS) - 15, 4), size=count, replace=False)
    return sorted((frames / FPS).tolist())


def film(
    path: Path,
    seconds: float,
    *,
    at_s: Sequence[float] = (),
    size: tuple[int, int] = (128, 96),
    sound: npt.NDArray[np.float32] | None = None,
    late_ms: int = 0,
    drop: Callable[[int], bool] = lambda _: False,
) -> Path:
    """A picture that shows something else for two frames at each moment, in H.264.

    With `sound` it also has a track of it, AAC or in Matroska FLAC, whose stream starts `late_ms`
    late. Frames for which `drop` holds are left out, as a camera loses them.
    """
    codec = "flac" if path.suffix == ".mkv" else "aac"
    width, height = size
    container = av.open(str(path), "w")
    video = container.add_stream("libx264", rate=FPS, options={"preset": "ultrafast"})
    video.width, video.height, video.pix_fmt = width, height, "yuv420p"
    audio = None
    if sound is not None:
        audio = cast("AudioStream", container.add_stream(codec, rate=RATE_HZ))
        audio.codec_context.layout = "mono"
    rng = np.random.default_rng(7)
    still = rng.integers(60, 120, (height, width, 3), np.uint8)
    shown = {round(at * FPS) + step for at in at_s for step in (0, 1)}
    for number in range(int(seconds * FPS)):
        if drop(number):
            continue
        picture = np.roll(still, number // 10, axis=1)
        frame = av.VideoFrame.from_ndarray(picture + 90 * (number in shown), format="rgb24")
        frame.pts, frame.time_base = number, Fraction(1, FPS)
        container.mux(video.encode(frame))
    if audio is not None and sound is not None:
        late = late_ms * RATE_HZ // 1000
        for start in range(0, len(sound), 1024):
            block = _block(sound[start : start + 1024], codec)
            block.sample_rate, block.time_base = RATE_HZ, Fraction(1, RATE_HZ)
            block.pts = start + late
            container.mux(audio.encode(block))
        container.mux(audio.encode())
    container.mux(video.encode())
    container.close()
    return path


def _block(samples: npt.NDArray[np.float32], codec: str) -> av.AudioFrame:
    if codec == "flac":
        whole = np.ascontiguousarray(np.rint(samples[None] * 32767).astype(np.int16))
        return av.AudioFrame.from_ndarray(whole, format="s16", layout="mono")
    return av.AudioFrame.from_ndarray(
        np.ascontiguousarray(samples[None]), format="fltp", layout="mono"
    )


def clicks(
    seconds: float, at_s: Sequence[float], *, lag_s: Callable[[float], float] = lambda _: 0.0
) -> npt.NDArray[np.float32]:
    """Faint noise, and at each moment plus its lag a knock that dies away."""
    rng = np.random.default_rng(11)
    samples = (0.003 * rng.standard_normal(int(seconds * RATE_HZ))).astype(np.float32)
    knock = 0.6 * np.exp(-np.arange(RATE_HZ // 10) / 400) * np.sin(np.arange(RATE_HZ // 10) * 0.4)
    for at in at_s:
        start = round((at + lag_s(at)) * RATE_HZ)
        end = min(len(samples), start + len(knock))
        if 0 <= start < end:
            samples[start:end] += knock[: end - start].astype(np.float32)
    return samples


def shaken(
    path: Path, seconds: float, at_s: Sequence[float], *, lag_s: float = 0.0, rate_hz: int = 100,
    start_ms: float = 0.0,
) -> Path:  # fmt: skip
    """An accelerometer that is knocked at each moment plus the lag."""
    rng = np.random.default_rng(5)
    count = int(seconds * rate_hz)
    size = 9.81 + 0.02 * rng.standard_normal(count)
    for at in at_s:
        start = round((at + lag_s) * rate_hz)
        if 0 <= start < count:
            size[start : start + 4] += np.array([6, 4, 2, 1])[: count - start]
    lines = (
        json.dumps({"ts": round(start_ms + 1000 * i / rate_hz, 3), "values": {"az": float(value)}})
        for i, value in enumerate(size)
    )
    path.write_text("\n".join(lines) + "\n")
    return path


def chat(path: Path, times_ms: Sequence[float]) -> Path:
    lines = (json.dumps({"ts": ts, "text": f"event {i}"}) for i, ts in enumerate(times_ms))
    path.write_text("\n".join(lines) + "\n")
    return path


def manifest(folder: Path, *rows: dict[str, Any]) -> Path:
    lines = (json.dumps({"tags": TAGS, **row}) for row in rows)
    (folder / "manifest.jsonl").write_text("\n".join(lines) + "\n")
    return folder
