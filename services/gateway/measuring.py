"""Live media measured as ingest measures a data set's: the same forms, the same functions."""

from __future__ import annotations

import numpy as np

from services.gateway.requests import PCM16, Medium
from services.ingest.measures import Measures, measure_audio, measure_image, measure_text
from services.ingest.normalise import normalise_text, shrink
from services.preprocess.media import SAMPLE_RATE_HZ, decode_audio, decode_image, decode_pcm16
from validators.contracts.errors import BadInput


def measure_medium(modality: str, medium: Medium) -> Measures:
    """The measures of one medium of a request.

    Raises:
        BadInput: it is of no kind that ingest measures, or cannot be read.
    """
    content = medium.content
    if isinstance(content, str):
        return measure_text(normalise_text(content))
    if isinstance(content, np.ndarray):
        return measure_audio(content, SAMPLE_RATE_HZ)
    if medium.media_type == PCM16:
        return measure_audio(decode_pcm16(content), SAMPLE_RATE_HZ)
    if modality == "image":
        return measure_image(shrink(decode_image(content)))
    if modality == "audio":
        return measure_audio(decode_audio(content), SAMPLE_RATE_HZ)
    raise BadInput(f"nothing measures the modality {modality}", where=modality)
