"""A post ends in time, follows nothing, and says what helps."""

from __future__ import annotations

import asyncio
import socket
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from infra.alerts.posting import MAX_BODY_BYTES, post, require_receiver
from tests.infra.alerts.receiver import Receiver, receiving
from validators.contracts.errors import BadInput, Refused, Unavailable


@pytest.mark.parametrize("url", [
    "https://alerts.example.org/hook", "https://a.b:8443/x?y=1", "http://127.0.0.1:9093",
    "http://localhost:9093/", "http://[::1]:9093/api",
])  # fmt: skip
def test_https_and_this_machine_may_receive_alerts(url: str) -> None:
    assert require_receiver(url) == url


@pytest.mark.parametrize("url", [
    "http://example.org/hook", "http://127.0.0.1.example.org/", "https://user:secret@example.org/",
    "file:///etc/passwd", "http://localhost@example.org/", "https://example.org/ x", "",
    "http://2130706433/", "https://example.org\\@evil/", "HTTPS://EXAMPLE.ORG",
])  # fmt: skip
def test_nothing_else_may(url: str) -> None:
    with pytest.raises(BadInput) as caught:
        require_receiver(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_an_answer_that_is_well_is_enough(status: int) -> None:
    with receiving(Receiver(status=status)) as receiver:
        post(receiver.url, b"{}", {"content-type": "application/json"})
        assert [body for _, body in receiver.came] == [b"{}"]


@pytest.mark.parametrize(("status", "error"), [
    (500, Unavailable), (503, Unavailable), (429, Unavailable),
    (400, Refused), (401, Refused), (404, Refused),
])  # fmt: skip
def test_an_answer_says_whether_trying_again_helps(status: int, error: type[Exception]) -> None:
    with receiving(Receiver(status=status)) as receiver, pytest.raises(error):
        post(receiver.url, b"{}", {})


def test_a_redirection_is_not_followed() -> None:
    with receiving() as elsewhere:

        def redirect(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(307)
            handler.send_header("location", elsewhere.url)
            handler.send_header("content-length", "0")
            handler.end_headers()

        with receiving(Receiver(answer=redirect)) as receiver, pytest.raises(Refused):
            post(receiver.url, b"{}", {})
        assert elsewhere.came == []


def test_a_receiver_that_drips_its_answer_is_given_up() -> None:
    ended = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        try:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not ended.wait(0.05):
                handler.wfile.write(b"x: y\r\n")
                handler.wfile.flush()
        except OSError:
            pass

    with receiving(Receiver(answer=drip)) as receiver:
        with pytest.raises(Unavailable, match="within"):
            post(receiver.url, b"{}", {}, deadline_s=0.5)
        ended.set()


def test_a_body_without_end_is_not_read() -> None:
    ended = threading.Event()

    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", str(2**40))
        handler.end_headers()
        ended.wait(30)

    with receiving(Receiver(answer=flood)) as receiver:
        post(receiver.url, b"{}", {}, deadline_s=20)
        ended.set()


def test_a_closed_port_is_unavailable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Unavailable):
        post(f"http://127.0.0.1:{port}/", b"{}", {})


def test_a_message_is_bounded() -> None:
    with pytest.raises(BadInput):
        post("http://127.0.0.1:1/", b"x" * (MAX_BODY_BYTES + 1), {})


async def test_it_works_where_an_event_loop_runs() -> None:
    with receiving() as receiver:
        post(receiver.url, b"{}", {})
        await asyncio.sleep(0)
        assert len(receiver.came) == 1
