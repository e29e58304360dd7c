"""The bodies of `/v1/answer`: multipart, JSON, or one raw picture, recording or text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

import msgspec
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from services.gateway.requests import PCM16, Medium, MultimodalRequest
from validators.contracts.errors import BadInput, Unsupported

_RAW_PCM = ("audio/l16", "audio/pcm", "audio/x-pcm", "audio/raw")
_MAX_FIELD_BYTES = 1024 * 1024


class AnswerBody(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON form. Bytes are base64; `audio` is a WAV, FLAC or Ogg file."""

    session_id: str | None = None
    image_bytes: list[bytes] = []
    text: str | None = None
    audio: bytes | None = None
    audio_pcm: bytes | None = None
    metadata: dict[str, str] = {}


_BODY = msgspec.json.Decoder(AnswerBody)
_METADATA = msgspec.json.Decoder(dict[str, str])


async def decode_body(body: bytes, content_type: str) -> tuple[MultimodalRequest, str | None]:
    """The request in a body, and the session it names.

    Raises:
        Unsupported: another content type.  BadInput: a body that is not what its type says.
    """
    kind = content_type.split(";", 1)[0].strip().lower()
    if kind == "multipart/form-data":
        return await _decode_multipart(body, content_type)
    if kind == "application/json":
        return _decode_json(body)
    if kind.startswith("image/"):
        return MultimodalRequest((("image", (Medium(kind, body),)),)), None
    if kind.startswith("audio/"):
        medium = Medium(PCM16 if kind in _RAW_PCM else kind, body)
        return MultimodalRequest((("audio", (medium,)),)), None
    if kind == "text/plain":
        return MultimodalRequest((("text", (Medium(kind, decode_text(body)),)),)), None
    raise Unsupported(
        f"a body of type {kind[:80]!r} is not read",
        where="content-type",
        remedy="Send multipart/form-data, application/json, image/*, audio/* or text/plain.",
    )


def build_request(
    images: Iterable[Medium],
    text: str | None,
    audio: Medium | None,
    metadata: dict[str, str],
) -> MultimodalRequest:
    """The request of the parts of a message; what is absent is left out."""
    pictures = tuple(images)
    media: list[tuple[str, tuple[Medium, ...]]] = []
    if pictures:
        media.append(("image", pictures))
    if text is not None:
        media.append(("text", (Medium("text/plain", text),)))
    if audio is not None:
        media.append(("audio", (audio,)))
    return MultimodalRequest(tuple(media), tuple(metadata.items()))


def decode_text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput("the text is not UTF-8", where="text") from error


def _decode_json(body: bytes) -> tuple[MultimodalRequest, str | None]:
    try:
        parsed = _BODY.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadInput(
            f"the body is not a request: {error}",
            where="body",
            remedy="Send session_id, image_bytes, text, audio or audio_pcm, metadata; "
            "bytes as base64.",
        ) from error
    if parsed.audio is not None and parsed.audio_pcm is not None:
        raise _two_recordings()
    audio = None if parsed.audio is None else Medium("audio/*", parsed.audio)
    if parsed.audio_pcm is not None:
        audio = Medium(PCM16, parsed.audio_pcm)
    images = [Medium("image/*", data) for data in parsed.image_bytes]
    return build_request(images, parsed.text, audio, parsed.metadata), parsed.session_id


class _Parser(MultiPartParser):
    """Keeps parts in memory (the body is bounded): nothing a caller sends touches a disk."""

    spool_max_size = 1 << 40


async def _decode_multipart(body: bytes, content_type: str) -> tuple[MultimodalRequest, str | None]:
    async def stream() -> AsyncGenerator[bytes, None]:
        yield body
        yield b""

    _require_whole(body, content_type)
    headers = Headers({"content-type": content_type})
    parser = _Parser(
        headers, stream(), max_files=64, max_fields=128, max_part_size=_MAX_FIELD_BYTES
    )
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, UnicodeDecodeError) as error:
        raise _bad_form() from error
    try:
        return await _read_form(form)
    finally:
        await form.close()


def _require_whole(body: bytes, content_type: str) -> None:
    """The parser keeps silent on a body cut short: what was cut would be missing, unsaid."""
    _, parameters = parse_options_header(content_type)
    boundary = parameters.get(b"boundary", b"")
    if not boundary or b"--" + boundary + b"--" not in body:
        raise _bad_form()


def _bad_form() -> BadInput:
    return BadInput(
        "the multipart body cannot be read to its end",
        where="body",
        remedy="Send multipart/form-data with its boundary, whole.",
    )


async def _read_form(form: FormData) -> tuple[MultimodalRequest, str | None]:
    images: list[Medium] = []
    audio: Medium | None = None
    fields: dict[str, str] = {}
    for name, value in form.multi_items():
        if name in ("image", "image_bytes"):
            images.append(Medium("image/*", await _bytes(value)))
        elif name in ("audio", "audio_pcm"):
            if audio is not None:
                raise _two_recordings()
            audio = Medium(_audio_type(name, value), await _bytes(value))
        elif name in ("text", "session_id", "metadata") and name not in fields:
            fields[name] = decode_text(await _bytes(value))
        else:
            raise BadInput(
                f"the form has an unknown or repeated field {name[:40]!r}",
                where="body",
                remedy="Send image, text, audio or audio_pcm, metadata (JSON), session_id.",
            )
    try:
        metadata = _METADATA.decode(fields["metadata"]) if "metadata" in fields else {}
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadInput("metadata is not a JSON object of texts", where="metadata") from error
    return build_request(images, fields.get("text"), audio, metadata), fields.get("session_id")


async def _bytes(value: UploadFile | str) -> bytes:
    return value.encode() if isinstance(value, str) else await value.read()


def _audio_type(name: str, value: UploadFile | str) -> str:
    declared = "" if isinstance(value, str) else (value.content_type or "").split(";")[0].lower()
    return PCM16 if name == "audio_pcm" or declared in _RAW_PCM else "audio/*"


def _two_recordings() -> BadInput:
    return BadInput(
        "the request holds two recordings", where="audio", remedy="Send audio or audio_pcm."
    )
