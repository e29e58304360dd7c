"""The way in: a checked file and its kind become the tracks that it holds."""

from __future__ import annotations

from collections.abc import Callable

from services.ingest.media.audio import open_audio
from services.ingest.media.containers import open_container
from services.ingest.media.document import DocumentTrack
from services.ingest.media.limits import Form, MediaLimits
from services.ingest.media.pcm import find_audio
from services.ingest.media.sensors import EventTrack, SensorTrack
from services.ingest.media.sources import MediaFile
from services.ingest.media.tracks import MediaTrack
from services.ingest.media.video import VideoTrack
from validators.contracts.errors import Unsupported


def open_tracks(
    file: MediaFile, kind: str, limits: MediaLimits | None = None, form: Form | None = None
) -> tuple[MediaTrack, ...]:
    """The tracks of a file, each to be read once; the file has to stay open meanwhile.

    Tracks of one file may be read side by side. `kind` is one of KINDS:
        video: frames, and the audio stream beside them where there is one, each at its own times.
        audio: of WAV, FLAC, Ogg, or of a container.
        document: texts of a PDF, or of one page as JPEG or PNG.
        sensors, events: readings or texts with their times, as JSON lines.

    It decodes in this process: for files of strangers take `isolated.Decoders`.

    Raises:
        Unsupported: an unknown kind, or nothing of that kind that is read here.
        TooLarge, BadInput: beyond its limits, or damaged from the start.
    """
    opener = KINDS.get(kind)
    if opener is None:
        raise Unsupported(
            f"there are no media of kind {kind!r}", where=file.name,
            remedy=f"Take one of {', '.join(sorted(KINDS))}.",
        )  # fmt: skip
    return opener(file, limits or MediaLimits(), form or Form())


def _video(file: MediaFile, limits: MediaLimits, form: Form) -> tuple[MediaTrack, ...]:
    frames = VideoTrack(file, limits, form)
    with open_container(file) as container:
        sounds = find_audio(container) is not None
    return (frames, open_audio(file, limits, form)) if sounds else (frames,)


def _audio(file: MediaFile, limits: MediaLimits, form: Form) -> tuple[MediaTrack, ...]:
    return (open_audio(file, limits, form),)


def _document(file: MediaFile, limits: MediaLimits, form: Form) -> tuple[MediaTrack, ...]:
    return (DocumentTrack(file, limits, form),)


def _sensors(file: MediaFile, limits: MediaLimits, form: Form) -> tuple[MediaTrack, ...]:
    return (SensorTrack(file, limits, form),)


def _events(file: MediaFile, limits: MediaLimits, form: Form) -> tuple[MediaTrack, ...]:
    return (EventTrack(file, limits, form),)


KINDS: dict[str, Callable[[MediaFile, MediaLimits, Form], tuple[MediaTrack, ...]]] = {
    "video": _video,
    "audio": _audio,
    "document": _document,
    "sensors": _sensors,
    "events": _events,
}
