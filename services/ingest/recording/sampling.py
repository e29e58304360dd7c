"""Cuts a recording into samples: at each moment the frame, and the window's sound and texts.

Nothing is stored before every sample is known to be good.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from services.ingest.enclosure import FileRefused
from services.ingest.measures import measure_audio, measure_text
from services.ingest.media.mfcc import COEFFICIENTS, HOP
from services.ingest.normalise import EmptyMedium, normalise_text, write_wav
from services.ingest.recording.comparing import Compared
from services.ingest.recording.frames import MAX_SAMPLES
from services.ingest.recording.tracks import Frame, ReadTrack, Sound
from services.ingest.timebase.correction import Correction
from services.ingest.timebase.ticks import NS_PER_S, to_ns
from services.preprocess.media import MAX_AUDIO_S, SAMPLE_RATE_HZ
from validators.contracts.dataset import Media
from validators.contracts.errors import BadInput, TooLarge
from validators.contracts.ports import ObjectStore

MIN_SOUND_S = 0.1
"""A shorter piece of sound is left out: a word needs more."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One sample before it is stored: `number` counts from 0, `sound` is (first, behind the last)
    sample of the waveform."""

    number: int
    at_ns: int
    frame: Frame | None
    sound: tuple[int, int] | None
    text: str | None

    @property
    def empty(self) -> bool:
        return self.frame is None and self.sound is None and self.text is None


def cut_samples(reference: ReadTrack, compared: Mapping[str, Compared], every_ns: int) -> list[Cut]:
    """The samples of a recording that hold anything.

    Raises:
        FileRefused: `text-too-large`, `corrupt-text`.
        TooLarge: more than MAX_SAMPLES.
    """
    windows = _windows(reference, compared, every_ns)
    texts = _texts_by_window(compared, windows)
    frames = compared["video"].track.frames if "video" in compared else {}
    sound = compared.get("audio")
    cuts = (
        Cut(number, start, frames.get(number), _sound_of(sound, start, end), texts.get(number))
        for number, (start, end) in enumerate(windows)
    )
    return [cut for cut in cuts if not cut.empty]


def _windows(
    reference: ReadTrack, compared: Mapping[str, Compared], every_ns: int
) -> list[tuple[int, int]]:
    """Whole windows over the reference, one at least; of a document one for each page, the last of
    which lasts as long as anything."""
    if not len(reference.times):
        return []
    if reference.name == "document":
        pages = np.unique(reference.times).tolist()
        times = [item.track.times for item in compared.values() if len(item.track.times)]
        end = max(int(item[-1]) for item in times) + 1
        return list(zip(pages, [*pages[1:], end], strict=True))
    first = int(reference.times[0])
    span = int(reference.times[-1]) - first + (reference.period_ns or 1)
    count = max(1, span // every_ns)
    if count > MAX_SAMPLES:
        raise TooLarge(
            f"a recording gives {count} samples, more than {MAX_SAMPLES}",
            remedy="Split it, or raise ingest.sample_every_ms.",
        )
    return [(first + at * every_ns, first + (at + 1) * every_ns) for at in range(count)]


def _sound_of(compared: Compared | None, start_ns: int, end_ns: int) -> tuple[int, int] | None:
    if compared is None or compared.track.sound is None:
        return None
    sound = compared.track.sound
    length = min(to_ns(MAX_AUDIO_S * 1000), end_ns - start_ns)
    own_ns = compared.correction.source_of(start_ns) - sound.start_ns
    first = round(own_ns * SAMPLE_RATE_HZ / NS_PER_S)
    last = first + round(length * SAMPLE_RATE_HZ / NS_PER_S)
    first, last = max(0, first), min(sound.samples, last)
    return (first, last) if last - first >= MIN_SOUND_S * SAMPLE_RATE_HZ else None


def _texts_by_window(
    compared: Mapping[str, Compared], windows: list[tuple[int, int]]
) -> dict[int, str]:
    """The texts of each window: the page that is shown, then what was said, in order of time."""
    found: dict[int, list[str]] = {}
    for name in ("document", "events"):
        if name in compared and compared[name].track.texts is not None:
            item = compared[name]
            hold_ns = item.track.rule.hold_ns if name == "document" else 0
            for number, text in _placed(item.track.texts, item.correction, windows, hold_ns):
                found.setdefault(number, []).append(text)
    normal = {number: _normal("\n".join(lines)) for number, lines in found.items()}
    return {number: text for number, text in normal.items() if text is not None}


def _placed(
    path: Path | None, correction: Correction, windows: list[tuple[int, int]], hold_ns: int
) -> Iterator[tuple[int, str]]:
    """(window, text): each text in the window of its time, and, where it is held, in the windows
    behind it until the next page or its greatest age."""
    if path is None or not windows:
        return
    page: list[str] = []
    page_ns, until = 0, 0
    with path.open("rb") as lines:
        for line in lines:
            ts_ns, text = json.loads(line)
            at_ns = correction.apply(ts_ns)
            if at_ns is None:
                continue
            if hold_ns and at_ns != page_ns:
                yield from _held(page, page_ns, min(at_ns, page_ns + hold_ns), windows, until)
                page, page_ns = [], at_ns
            page.append(text)
            number = _window(windows, at_ns)
            if number is not None:
                until = number + 1
                yield number, text
            elif hold_ns:
                until = 0
    if hold_ns:
        yield from _held(page, page_ns, page_ns + hold_ns, windows, until)


def _held(
    page: list[str], page_ns: int, end_ns: int, windows: list[tuple[int, int]], first: int
) -> Iterator[tuple[int, str]]:
    """A page in the windows that begin while it is still shown."""
    for number in range(first, len(windows)):
        start = windows[number][0]
        if start >= end_ns:
            return
        if start > page_ns:
            yield from ((number, text) for text in page)


def _window(windows: list[tuple[int, int]], at_ns: int) -> int | None:
    first, width = windows[0][0], windows[0][1] - windows[0][0]
    guess = (at_ns - first) // width if width else 0
    if 0 <= guess < len(windows) and windows[guess][0] <= at_ns < windows[guess][1]:
        return guess
    return next((i for i, (start, end) in enumerate(windows) if start <= at_ns < end), None)


def _normal(text: str) -> str | None:
    try:
        return normalise_text(text)
    except EmptyMedium:
        return None
    except TooLarge as error:
        raise FileRefused("text-too-large", error.what) from error
    except BadInput as error:
        raise FileRefused("corrupt-text", error.what) from error


def store_cut(cut: Cut, sound: Sound | None, quarantine: ObjectStore) -> tuple[Media, ...]:
    """The sample's media in the quarantine, sorted by modality."""
    media: list[Media] = []
    if cut.sound is not None and sound is not None:
        samples = read_sound(sound, *cut.sound)
        waveform = np.asarray(samples / 32768, np.float32)
        measures = measure_audio(waveform, SAMPLE_RATE_HZ)
        media.append(Media("audio", quarantine.put(write_wav(samples)), "audio/wav", measures))
    if cut.frame is not None:
        digest = quarantine.put_file(cut.frame.path)
        media.append(Media("image", digest, "image/png", cut.frame.measures))
    if cut.text is not None:
        digest = quarantine.put(cut.text.encode())
        media.append(Media("text", digest, "text/plain", measure_text(cut.text)))
    return tuple(media)


def read_features(sound: Sound, first: int, last: int) -> npt.NDArray[np.float32]:
    """The MFCC [frames, coefficients] whose times are within samples `first` to `last`."""
    start, end = -(-first // HOP), min(sound.feature_count, -(-last // HOP))
    width = COEFFICIENTS * np.dtype(np.float32).itemsize
    read = np.fromfile(
        sound.features, np.float32, COEFFICIENTS * (end - start), offset=start * width
    )
    return read.reshape(-1, COEFFICIENTS)


def read_sound(sound: Sound, first: int, last: int) -> npt.NDArray[np.int16]:
    """Samples `first` to `last`, exclusive, of a waveform on disk."""
    read = np.fromfile(sound.path, dtype="<i2", count=last - first, offset=2 * first)
    return read.astype(np.int16)
