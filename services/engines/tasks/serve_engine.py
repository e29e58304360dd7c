"""Task: one engine, loaded with every check, answering calls until its caller hangs up."""

from __future__ import annotations

import os
from pathlib import Path

from services.children.phases import Phases
from services.children.report import ErrorDocument
from services.engines.frames import pack_frame, receive_frame
from services.engines.load import load_opened
from services.engines.requests import ServeRequest
from services.engines.tensors import Arrays
from validators.contracts.errors import ModalgateError
from validators.contracts.ports import RunningEngine, Tensors

REQUEST = ServeRequest


def run(request: ServeRequest, phases: Phases) -> None:
    """The first frame is empty and says that the engine is ready."""

    def send(arrays: Arrays, error: ErrorDocument | None = None) -> None:
        for piece in pack_frame(arrays, error):
            rest = piece
            while rest:
                rest = rest[os.write(request.answers, rest) :]

    def fill(buffer: memoryview) -> None:
        while buffer:
            count = os.readv(request.calls, [buffer])
            if not count:
                raise EOFError
            buffer = buffer[count:]

    with phases.phase("load"):
        engine = load_opened(request.manifest, Path(request.engine), threads=request.threads)
    send({})
    while True:
        try:
            feeds, _ = receive_frame(fill)
        except EOFError:
            engine.close()
            return
        send(*_answer(engine, feeds))


def _answer(engine: RunningEngine, feeds: Tensors) -> tuple[Arrays, ErrorDocument | None]:
    try:
        return engine.run(feeds), None
    except ModalgateError as error:
        return {}, ErrorDocument(type(error).__name__, error.what, error.where, error.remedy)
