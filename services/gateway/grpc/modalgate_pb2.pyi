from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MultiModalRequest(_message.Message):
    __slots__ = ("session_id", "image_bytes", "text", "audio_pcm", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    IMAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    AUDIO_PCM_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    image_bytes: _containers.RepeatedScalarFieldContainer[bytes]
    text: str
    audio_pcm: bytes
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, session_id: _Optional[str] = ..., image_bytes: _Optional[_Iterable[bytes]] = ..., text: _Optional[str] = ..., audio_pcm: _Optional[bytes] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class MultiModalAnswer(_message.Message):
    __slots__ = ("request_id", "session_id", "revision", "items", "transcript", "branches", "degraded", "encoders", "embedding", "engines")
    class Item(_message.Message):
        __slots__ = ("id", "caption", "score")
        ID_FIELD_NUMBER: _ClassVar[int]
        CAPTION_FIELD_NUMBER: _ClassVar[int]
        SCORE_FIELD_NUMBER: _ClassVar[int]
        id: str
        caption: str
        score: float
        def __init__(self, id: _Optional[str] = ..., caption: _Optional[str] = ..., score: _Optional[float] = ...) -> None: ...
    class Branch(_message.Message):
        __slots__ = ("status", "ms", "reason")
        STATUS_FIELD_NUMBER: _ClassVar[int]
        MS_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        status: str
        ms: float
        reason: str
        def __init__(self, status: _Optional[str] = ..., ms: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...
    class BranchesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: MultiModalAnswer.Branch
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[MultiModalAnswer.Branch, _Mapping]] = ...) -> None: ...
    class EncodersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class EnginesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    TRANSCRIPT_FIELD_NUMBER: _ClassVar[int]
    BRANCHES_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_FIELD_NUMBER: _ClassVar[int]
    ENCODERS_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_FIELD_NUMBER: _ClassVar[int]
    ENGINES_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_id: str
    revision: str
    items: _containers.RepeatedCompositeFieldContainer[MultiModalAnswer.Item]
    transcript: str
    branches: _containers.MessageMap[str, MultiModalAnswer.Branch]
    degraded: bool
    encoders: _containers.ScalarMap[str, str]
    embedding: _containers.RepeatedScalarFieldContainer[float]
    engines: _containers.ScalarMap[str, str]
    def __init__(self, request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., revision: _Optional[str] = ..., items: _Optional[_Iterable[_Union[MultiModalAnswer.Item, _Mapping]]] = ..., transcript: _Optional[str] = ..., branches: _Optional[_Mapping[str, MultiModalAnswer.Branch]] = ..., degraded: _Optional[bool] = ..., encoders: _Optional[_Mapping[str, str]] = ..., embedding: _Optional[_Iterable[float]] = ..., engines: _Optional[_Mapping[str, str]] = ...) -> None: ...
