"""Events are sent in bounded time to servers that are well, dead, slow, endless, or answer 500."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from infra.lineage.events import tell_release
from infra.lineage.send import Destination, Sent, destination_of, send_events
from tests.infra.lineage.test_events import STORY

EVENTS = tell_release(STORY)
PATIENCE_S = 30.0


class Handler(BaseHTTPRequestHandler):
    """Answers as the server says; `release` lets what hangs go on when the test is over."""

    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, self.headers.get("Authorization"), json.loads(body)))
        if self.server.manner == "slow":
            self.server.released.wait(PATIENCE_S)
        if self.server.manner == "endless":
            self._trickle()
            return
        self.send_response(500 if self.server.manner == "broken" else 201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _trickle(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not self.server.released.wait(0.05):
            try:
                self.wfile.write(b"X-More: and more\r\n")
                self.wfile.flush()
            except OSError:
                return

    def log_message(self, *_: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    kinds: ClassVar = ("well", "broken", "slow", "endless")

    def __init__(self, manner: str) -> None:
        self.manner, self.released = manner, threading.Event()
        self.asked: list[tuple[str, str | None, Any]] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving(manner: str) -> Iterator[Server]:
    with Server(manner) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()


def test_a_server_that_is_well_gets_every_event_once_and_in_order() -> None:
    with serving("well") as server:
        sent = send_events(EVENTS, Destination(server.url, api_key="k3y"))
    assert sent == Sent(len(EVENTS))
    assert [(path, key) for path, key, _ in server.asked] == [
        ("/api/v1/lineage", "Bearer k3y")
    ] * len(EVENTS)
    assert [body["eventType"] for _, _, body in server.asked][:3] == ["START", "START", "COMPLETE"]


def test_a_server_that_answers_500_is_asked_once() -> None:
    with serving("broken") as server:
        assert send_events(EVENTS, Destination(server.url)) == Sent(0, "it answered 500")
    assert len(server.asked) == 1


@pytest.mark.parametrize("manner", ["slow", "endless"])
def test_a_server_that_takes_its_time_is_left_behind(manner: str) -> None:
    with serving(manner) as server:
        sent = send_events(EVENTS, Destination(server.url), budget_s=0.4)
        assert sent.events == 0
        assert sent.problem in ("it took longer than 0.4 s", "it did not answer in time")
        assert len(server.asked) <= 1


def test_a_dead_server_is_said_to_be_one() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sent = send_events(EVENTS, Destination(f"http://127.0.0.1:{port}"))
    assert sent == Sent(0, "it could not be reached")


@pytest.mark.parametrize("url", ["nonsense", "http://", "ftp://127.0.0.1/x", "http://[::1"])
def test_an_address_that_is_none_is_a_problem_and_no_exception(url: str) -> None:
    assert send_events(EVENTS, Destination(url)).problem


def test_neither_key_nor_password_is_in_what_is_printed_or_said() -> None:
    secret = Destination("http://olga:pa55@127.0.0.1:1/x", api_key="k3y")
    said = f"{secret!r} {secret.host} {send_events(EVENTS, secret)}"
    assert "pa55" not in said
    assert "k3y" not in said
    assert secret.host == "127.0.0.1:1"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"OPENLINEAGE_URL": " "}, None),
        ({"OPENLINEAGE_URL": "http://h", "OPENLINEAGE_DISABLED": "True"}, None),
        ({"OPENLINEAGE_URL": "http://h"}, Destination("http://h")),
        (
            {
                "OPENLINEAGE_URL": "http://h",
                "OPENLINEAGE_ENDPOINT": "x/y",
                "OPENLINEAGE_API_KEY": "k",
            },
            Destination("http://h", "x/y", "k"),
        ),
    ],
)
def test_the_environment_says_where_to(
    environment: dict[str, str], expected: Destination | None
) -> None:
    assert destination_of(environment) == expected
