"""Recordings to ingest: made once per run by real encoders, from packaged photographs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
from PIL import Image

from tests.services.ingest.media.recordings import draw_page, scan_to_pdf
from tests.services.ingest.recording.films import FPS, RATE_HZ, chat, clicks, moments, shaken
from tests.services.media_files import picture, wav

EVENTS_HZ = 5
_WORDS = (
    "the", "minutes", "of", "meeting", "name", "three", "people", "who", "spoke", "about", "new",
    "lamps", "and", "asked", "for", "prices", "before", "end", "March", "while", "others", "wished",
)  # fmt: skip


def write_recording(folder: Path, name: str, seconds: float, size: tuple[int, int]) -> None:
    """`name`.mp4 (H.264, 30 frames/s), .wav (16 kHz), .jsonl (5 texts/s), -imu.jsonl (100/s).

    The sound is 128 ms late, the sensor 42 ms early.
    """
    at_s = moments(seconds)
    write_video(folder / f"{name}.mp4", seconds, size, at_s)
    (folder / f"{name}.wav").write_bytes(wav(clicks(seconds, at_s, lag_s=lambda _: 0.128), RATE_HZ))
    chat(folder / f"{name}.jsonl", [1000 / EVENTS_HZ * i for i in range(int(EVENTS_HZ * seconds))])
    shaken(folder / f"{name}-imu.jsonl", seconds, at_s, lag_s=-0.042)


def write_video(path: Path, seconds: float, size: tuple[int, int], at_s: Sequence[float]) -> None:
    """A slow pan over a photograph with grain; another one flashes up for two frames at a time."""
    width, height = size
    wide = _scaled(packaged("astronaut"), (width + 4 * int(seconds * FPS) // 2, height))
    other = _scaled(packaged("coffee"), size)
    rng = np.random.default_rng(3)
    grain = [rng.integers(-6, 7, (height, width, 1), np.int16) for _ in range(4)]
    shown = {round(at * FPS) + step for at in at_s for step in (0, 1)}
    container = av.open(str(path), "w")
    video = container.add_stream("libx264", rate=FPS, options={"preset": "ultrafast", "crf": "28"})
    video.width, video.height, video.pix_fmt = width, height, "yuv420p"
    for number in range(int(seconds * FPS)):
        left = 2 * number
        scene = other if number in shown else wide[:, left : left + width]
        grainy = np.clip(scene.astype(np.int16) + grain[number % 4], 0, 255).astype(np.uint8)
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(grainy), format="rgb24")
        frame.pts, frame.time_base = number, Fraction(1, FPS)
        container.mux(video.encode(frame))
    container.mux(video.encode())
    container.close()


def write_scan(path: Path, pages: int) -> None:
    """A scanned letter: pages of 40 lines as pictures, without a text layer."""
    rng = np.random.default_rng(9)
    letters = []
    for _ in range(pages):
        lines = [(100, 100 + 38 * line, " ".join(rng.choice(_WORDS, 8))) for line in range(40)]
        letters.append(draw_page(lines, size=(1240, 1754), letters=26))
    scan_to_pdf(path, letters)


def packaged(name: str) -> npt.NDArray[np.uint8]:
    """One of scikit-image's photographs."""
    return np.asarray(picture(name), np.uint8)


def _scaled(picture: npt.NDArray[np.uint8], size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR))
