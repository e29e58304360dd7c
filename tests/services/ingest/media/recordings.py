"""Media for the tests, made by the encoders inside PyAV, by Pillow and by soundfile."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from services.ingest.media import MediaFile, MediaLimits

MS = Fraction(1, 1000)
FONT = "DejaVuSans.ttf"
STEP = 6  # how much brighter each frame is than the one before


def opened(path: Path, limits: MediaLimits | None = None) -> MediaFile:
    return MediaFile.open(path, limit_bytes=(limits or MediaLimits()).file_bytes)


def picture(number: int, width: int = 64, height: int = 48) -> npt.NDArray[np.uint8]:
    """Grey that grows with the number of the frame; its upper left quarter is red."""
    pixels = np.full((height, width, 3), (number * STEP) % 240, dtype=np.uint8)
    pixels[: height // 2, : width // 2] = (250, 10, 10)
    return pixels


def number_of(pixels: npt.NDArray[Any]) -> int:
    """Which `picture` a frame shows, by its lower right corner."""
    height, width = pixels.shape[:2]
    return round(float(pixels[height * 3 // 4 :, width * 3 // 4 :].mean()) / STEP)


def make_video(
    path: Path,
    times_ms: Sequence[int],
    *,
    codec: str = "libx264",
    b_frames: int = 2,
    size: tuple[int, int] = (64, 48),
    turn: int | None = None,
    options: dict[str, str] | None = None,
    rate: int = 30,
) -> Path:
    """One picture at each time. B-frames, where the codec has them."""
    container = av.open(str(path), "w", options=options or {})
    stream = container.add_stream(codec, rate=rate)
    stream.width, stream.height = size
    stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    stream.codec_context.max_b_frames = b_frames
    stream.bit_rate = 4_000_000
    stream.time_base = stream.codec_context.time_base = MS
    if turn is not None:
        stream.set_display_rotation(turn)
    for number, time_ms in enumerate(times_ms):
        frame = av.VideoFrame.from_ndarray(picture(number, *size), format="rgb24")
        frame.pts, frame.time_base = time_ms, MS
        for packet in stream.encode(frame):
            container.mux(packet)
    for packet in stream.encode():
        container.mux(packet)
    container.close()
    return path


def make_odd_clock(path: Path, times_ms: Sequence[int]) -> Path:
    """Whole pictures (no prediction) stored in their order at just these times, in Matroska."""
    container = av.open(str(path), "w", format="matroska")
    stream = container.add_stream("mjpeg", rate=25)
    stream.width, stream.height, stream.pix_fmt = 64, 48, "yuvj420p"
    stream.time_base = stream.codec_context.time_base = MS
    for number, time_ms in enumerate(times_ms):
        frame = av.VideoFrame.from_ndarray(picture(number), format="rgb24")
        frame.pts, frame.time_base = number, MS
        for packet in stream.encode(frame):
            packet.dts, packet.pts = number, time_ms
            container.mux(packet)
    container.close()
    return path


def tone(
    seconds: float, rate_hz: int, hertz: float = 440.0, level: float = 0.5
) -> npt.NDArray[Any]:
    return (level * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate_hz)) / rate_hz)).astype(
        np.float32
    )


def click(seconds: float, at_s: float, rate_hz: int) -> npt.NDArray[np.float32]:
    """Silence with 10 ms of a tone at one moment."""
    samples = np.zeros(int(seconds * rate_hz), dtype=np.float32)
    start = int(at_s * rate_hz)
    samples[start : start + rate_hz // 100] = tone(0.01, rate_hz, 1000, 0.9)
    return samples


def make_film(
    path: Path,
    *,
    audio_codec: str,
    video_codec: str = "libx264",
    delay_ms: int = 0,
    seconds: float = 2.0,
    rate_hz: int = 48_000,
    cut_ms: tuple[int, int] | None = None,
) -> Path:
    """A flash at 500 ms (frame 15) and a click at 500 ms, whose stream starts `delay_ms` late.

    Audio between the two times of `cut_ms` is left out of the file.
    """
    container = av.open(str(path), "w")
    video = container.add_stream(video_codec, rate=30)
    video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
    audio = container.add_stream(audio_codec, rate=rate_hz)
    audio.codec_context.layout = "stereo"
    for number in range(int(30 * seconds)):
        bright = 255 if number in (15, 16) else 0
        frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), bright, np.uint8), format="rgb24")
        frame.pts, frame.time_base = number, Fraction(1, 30)
        for packet in video.encode(frame):
            container.mux(packet)
    samples = click(seconds, 0.5, rate_hz)
    late = delay_ms * rate_hz // 1000
    for start in range(0, len(samples), 1024):
        if cut_ms and cut_ms[0] <= 1000 * start / rate_hz < cut_ms[1]:
            continue
        part = np.ascontiguousarray(np.tile(samples[start : start + 1024], (2, 1)))
        sound = av.AudioFrame.from_ndarray(part, format="fltp", layout="stereo")
        sound.sample_rate, sound.pts, sound.time_base = rate_hz, start + late, Fraction(1, rate_hz)
        for packet in audio.encode(sound):
            container.mux(packet)
    for stream in (video, audio):
        for packet in stream.encode():
            container.mux(packet)
    container.close()
    return path


def draw_page(
    lines: Sequence[tuple[int, int, str]], *, size: tuple[int, int] = (900, 1200), letters: int = 30
) -> Image.Image:
    """Black letters on white: (x, y, text)."""
    page = Image.new("L", size, 255)
    pen = ImageDraw.Draw(page)
    font = ImageFont.truetype(FONT, letters)
    for x, y, text in lines:
        pen.text((x, y), text, fill=0, font=font)
    return page


def scan_to_pdf(path: Path, pages: Sequence[Image.Image]) -> Path:
    """Pictures of pages in a PDF, without a text layer."""
    pages[0].save(path, save_all=True, append_images=list(pages[1:]), resolution=120)
    return path


def write_pdf(
    path: Path, pages: Sequence[str], *, box: str = "0 0 595 842", extra: str = "", lock: str = ""
) -> Path:
    """A born-digital PDF: each page's content is given in PDF operators.

    Fonts are /F (Helvetica) and /G (a Chinese one by its name, with codes of UCS-2). `box` is the
    media box of every page; `extra` goes into each page's dictionary, `lock` into the trailer.
    """
    first = 6
    kids = " ".join(f"{first + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H "
        "/DescendantFonts [5 0 R] >>",
        "<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light "
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 4 >> /DW 1000 >>",
    ]
    for at, content in enumerate(pages):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [{box}] {extra} "
            f"/Resources << /Font << /F 3 0 R /G 4 0 R >> >> /Contents {first + 1 + 2 * at} 0 R >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    body, places = bytearray(b"%PDF-1.7\n"), []
    for number, item in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{item}\nendobj\n".encode("latin-1")
    start = len(body)
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    body += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode()
    body += f"trailer << /Size {len(objects) + 1} /Root 1 0 R {lock} >>\n".encode("latin-1")
    body += f"startxref\n{start}\n%%EOF\n".encode()
    path.write_bytes(body)
    return path


LOCK = (
    "/ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>] "
    f"/Encrypt << /Filter /Standard /V 1 /R 2 /P -44 /O <{'5a' * 32}> /U <{'a5' * 32}> >>"
)
"""Protects a PDF with a password that nobody knows."""

STROKES = {
    "中": ["15 25 85 25", "15 65 85 65", "15 25 15 65", "85 25 85 65", "50 5 50 97"],
    "日": ["22 8 78 8", "22 50 78 50", "22 92 78 92", "22 8 22 96", "78 8 78 96"],
    "田": [
        "12 12 88 12", "12 50 88 50", "12 88 88 88", "12 12 12 92", "88 12 88 92", "50 12 50 88",
    ],
    "口": ["15 20 85 20", "15 82 85 82", "15 20 15 88", "85 20 85 88"],
    "王": ["12 12 88 12", "18 48 82 48", "6 90 94 90", "50 12 50 90"],
    "工": ["12 15 88 15", "6 88 94 88", "50 15 50 88"],
    "山": ["50 6 50 90", "12 35 12 90", "88 35 88 95", "12 90 88 90"],
    "上": ["45 5 45 92", "45 40 85 40", "6 92 94 92"],
    "三": ["12 15 88 15", "18 50 82 50", "5 88 95 88"],
}  # fmt: skip
"""Chinese characters as straight strokes, in hundredths of their square: no font is needed."""


def draw_chinese(page: Image.Image, x: int, y: int, text: str, size: int = 60) -> None:
    """Characters of STROKES onto a page."""
    pen = ImageDraw.Draw(page)
    for number, char in enumerate(text):
        for stroke in STROKES[char]:
            left, top, right, bottom = (int(part) * size / 100 for part in stroke.split())
            x0 = x + number * size * 1.2
            pen.line((x0 + left, y + top, x0 + right, y + bottom), fill=0, width=size // 12)


def write_text(lines: Sequence[tuple[int, int, str]], *, matrix: str = "1 0 0 1") -> str:
    """PDF operators for lines at (x, y) in points from the lower left."""
    shown = []
    for x, y, text in lines:
        font, code = ("/F", f"({text})") if text.isascii() else ("/G", _ucs2(text))
        shown.append(f"{font} 14 Tf {matrix} {x} {y} Tm {code} Tj")
    return "BT " + " ".join(shown) + " ET"


def _ucs2(text: str) -> str:
    return f"<{text.encode('utf-16-be').hex()}>"
