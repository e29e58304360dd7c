"""What a gateway recorded of live requests, written down for the drift watch."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping

from infra.windows import WindowFolder
from services.gateway.recording import Recorder
from validators.contracts.errors import ModalgateError
from validators.drift.window_file import write_window

SETTING = "MODALGATE_RECORDING"
OFF = "off"

_log = logging.getLogger(__name__)


def flush_recorded(recorder: Recorder, folder: WindowFolder, *, everything: bool = False) -> int:
    """Write down the windows that are ready, or all there is; how many.

    A window that cannot be written is handed out again at the next time.
    """
    written = 0
    for live in recorder.take(everything=everything):
        try:
            folder.put(live.bundle, write_window(live.window))
            written += 1
        except ModalgateError as error:
            recorder.give_back(live)
            _log.warning("a window of live requests was not written down: %s", error.what)
    return written


async def keep_recording(
    recorder: Recorder, folder: WindowFolder, every_s: float, stop: asyncio.Event
) -> None:
    """A flush now and then; what is left is written when all is drained."""
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), every_s)
            return
        await asyncio.to_thread(flush_recorded, recorder, folder)


def may_record(environment: Mapping[str, str]) -> bool:
    """Whether this machine records at all, whatever a bundle allows."""
    return environment.get(SETTING, "").strip().lower() != OFF
