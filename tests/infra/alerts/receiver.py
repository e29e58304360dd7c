"""A receiver of alerts on a port of this machine, that answers as a test wants."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from validators.contracts.alerts import Alert, AlertState

MINUTE_MS = 60_000
Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Receiver:
    """What came in, and how the next ones are answered."""

    url: str = ""
    came: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    status: int = 200
    answer: Answer | None = None


@contextlib.contextmanager
def receiving(receiver: Receiver | None = None) -> Iterator[Receiver]:
    made = receiver or Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            made.came.append((dict(self.headers.items()), body))
            if made.answer is not None:
                made.answer(self)
                return
            self.send_response(made.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_address[1]}/alerts"
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def make_alert(
    told_ms: int = 1_700_000_000_000, state: AlertState = AlertState.FIRING, **changes: Any
) -> Alert:
    given: dict[str, Any] = {
        "name": "ModalgateDrift",
        "severity": "warning",
        "labels": (("service", "shop"),),
        "summary": "2 of the last 3 windows drifted: image.brightness",
        "remedy": "Run: modalgate drift explain shop",
        "state": state,
        "started_ms": told_ms,
        "told_ms": told_ms,
        "until_ms": told_ms + 60 * MINUTE_MS,
    }
    return Alert(**(given | changes))
