"""Spoken requests, synthesised on this machine: hibari, its built-in voice, a fixed seed."""

from __future__ import annotations

import io

import hibari
import numpy as np
import soundfile

SEED = 0


class Speaker:
    """Reads texts aloud. The same text gives the same bytes."""

    def __init__(self) -> None:
        self._voice = hibari.Hibari(threads=1)

    def say(self, text: str) -> bytes:
        """The text as a WAV file, 16-bit mono at 24 kHz."""
        samples = np.clip(self._voice(text, seed=SEED), -1.0, 1.0)
        file = io.BytesIO()
        soundfile.write(file, samples, hibari.SAMPLE_RATE, format="WAV", subtype="PCM_16")
        return file.getvalue()
