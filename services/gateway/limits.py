"""What one request may hold, checked before anything of it is decoded."""

from __future__ import annotations

from services.gateway.requests import PCM16, Medium, MultimodalRequest
from services.gateway.settings import GatewaySettings
from services.preprocess.media import SAMPLE_RATE_HZ
from validators.contracts.errors import BadInput, TooLarge

_PCM16_BYTES = 2
_FLOAT_BYTES = 4


def check_media(request: MultimodalRequest, settings: GatewaySettings) -> None:
    """Raises TooLarge or BadInput where a medium, or the number of them, is out of bounds."""
    for modality, media in request.media:
        if len(media) > settings.max_objects:
            raise TooLarge(
                f"the request holds {len(media)} objects of {modality}",
                where=modality,
                remedy=f"Send at most {settings.max_objects}.",
            )
        for medium in media:
            _check_medium(modality, medium, settings)
    _check_metadata(request.metadata, settings)


def _check_medium(modality: str, medium: Medium, settings: GatewaySettings) -> None:
    limit = _limit_bytes(medium, settings)
    if medium.size_bytes > limit:
        raise TooLarge(
            f"the {modality} has {medium.size_bytes} bytes, more than {limit}",
            where=modality,
            remedy="Send a smaller one.",
        )
    if not medium.size_bytes:
        raise BadInput(f"the {modality} is empty", where=modality, remedy="Send its content.")


def _limit_bytes(medium: Medium, settings: GatewaySettings) -> int:
    samples = int(settings.max_audio_s * SAMPLE_RATE_HZ)
    if medium.media_type == PCM16:
        return samples * _PCM16_BYTES
    if isinstance(medium.content, str):
        return settings.max_text_characters
    if medium.media_type.startswith("image/"):
        return settings.max_image_bytes
    if not isinstance(medium.content, bytes):
        return samples * _FLOAT_BYTES
    return settings.max_body_bytes  # an encoded recording: its header says how long it is


def _check_metadata(metadata: tuple[tuple[str, str], ...], settings: GatewaySettings) -> None:
    size_bytes = sum(len(key) + len(value) for key, value in metadata)
    if len(metadata) > settings.max_metadata_entries or size_bytes > settings.max_metadata_bytes:
        raise TooLarge(
            f"the metadata has {len(metadata)} entries of {size_bytes} characters",
            where="metadata",
            remedy=f"Send at most {settings.max_metadata_entries} entries and "
            f"{settings.max_metadata_bytes} characters.",
        )
