from __future__ import annotations

import json

import numpy as np
import pytest

from services.deidentify.pseudonyms import ReleaseKey
from services.deidentify.voice import VoiceRedactor, mel_bands, mfcc, voice_hash
from services.ingest.folder import read_audio
from tests.services.media_files import tone, wav
from validators.contracts.dataset import Media
from validators.contracts.digest import digest_bytes

KEY = ReleaseKey(b"a" * 32, "tests")


def redacted(samples: np.ndarray, key: ReleaseKey = KEY) -> bytes:
    found = read_audio(wav(samples))
    media = Media("audio", digest_bytes(found.data), found.media_type, found.measures)
    return VoiceRedactor(key).redact(media, found.data).data


def test_what_is_released_describes_and_cannot_be_played() -> None:
    document = json.loads(redacted(tone(0.5)))
    assert len(bytes.fromhex(document["voice"])) == 16
    assert document["frames_per_s"] == 100
    assert document["measures"]["duration_ms"] == 500
    assert set(document) == {"voice", "frames", "frames_per_s", "measures"}


def test_the_same_sound_links_within_a_key_and_not_across_keys() -> None:
    assert redacted(tone(hz=300)) == redacted(tone(hz=300))
    assert redacted(tone(hz=300)) != redacted(tone(hz=600))
    other = ReleaseKey(b"b" * 32, "tests")
    assert json.loads(redacted(tone(), other))["voice"] != json.loads(redacted(tone()))["voice"]


@pytest.mark.parametrize(("samples", "frames"), [(1, 1), (400, 1), (560, 2), (16_000, 98)])
def test_features_come_at_a_hundred_frames_a_second(samples: int, frames: int) -> None:
    features = mfcc(np.random.default_rng(0).normal(size=samples))
    assert features.shape == (frames, 13)
    assert np.isfinite(features).all()


def test_silence_has_features_and_a_hash() -> None:
    assert len(voice_hash(mfcc(np.zeros(16_000)), KEY)) == 32


def test_a_tone_lies_in_the_band_of_its_pitch() -> None:
    bands = mel_bands()
    assert bands.shape == (257, 40)
    peaks_hz = bands.argmax(axis=0) * 16_000 / 512
    assert (np.diff(peaks_hz) >= 0).all()
    assert peaks_hz[0] < 150
    assert peaks_hz[-1] > 6000
