"""What ingest does to a medium, by name; `services.ingest.normalise` does it.

A version rises whenever the same file would give other bytes.
"""

from __future__ import annotations

from services.ingest.normalise import MAX_SIDE_PX
from services.preprocess.media import SAMPLE_RATE_HZ
from validators.lineage.preprocessing import Setting, Step

STAGE = "ingest"

_RECIPES: dict[str, tuple[str, int, dict[str, Setting]]] = {
    "image/png": ("upright-rgb-png", 1, {"max_side_px": MAX_SIDE_PX}),
    "audio/wav": ("mono-pcm-wav", 1, {"bits": 16, "rate_hz": SAMPLE_RATE_HZ}),
    "text/plain": ("nfc-plain-text", 1, {"line_end": "lf"}),
}


def ingest_step(media_type: str) -> Step:
    """The step that brings any medium into its one form, by the IANA type of that form."""
    name, version, settings = _RECIPES.get(media_type, (media_type, 1, {}))
    return Step(STAGE, name, version, tuple(sorted(settings.items())))
