"""A small gateway: the admin interface and readiness for real, and no engines.

What a bundle's folder holds decides what happens when it is loaded: `refuse` is answered with 403,
`crash` ends the process; what a sealed manifest holds does the same. `--journal` records every
change as a line.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Gateway:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.token = Path(arguments.token_file).read_text()
        self.revisions: dict[str, dict[str, Any]] = {}
        self.traffic: dict[str, Any] = {"stable": None, "canary": None, "percent": 0}
        self.lock = threading.Lock()

    def record(self, line: str) -> None:
        if self.arguments.journal:
            with Path(self.arguments.journal).open("a") as stream:
                stream.write(line + "\n")

    def load(self, body: dict[str, Any]) -> tuple[int, Any]:
        folder = Path(body["path"])
        if (folder / "crash").exists():
            print("engine crashed while loading", flush=True)
            os._exit(3)
        if (folder / "refuse").exists():
            error = {
                "what": "the signature does not match",
                "where": body["name"],
                "remedy": "Sign.",
            }
            return 403, {"error": error}
        self.revisions[body["name"]] = {**body, "ready": True, "message": ""}
        self.record(f"load {body['name']}")
        return 200, {}

    def unload(self, name: str) -> tuple[int, Any]:
        if name in (self.traffic["stable"], self.traffic["canary"]):
            return 409, {"error": {"what": "it has traffic", "where": name, "remedy": ""}}
        if self.revisions.pop(name, None) is None:
            return 404, {"error": {"what": "no such revision", "where": name, "remedy": ""}}
        self.record(f"unload {name}")
        return 200, {}

    def replace(self, name: str, encoder: str, body: dict[str, Any]) -> tuple[int, Any]:
        manifest = Path(body["manifest"]).read_bytes()
        if manifest == b"crash":
            os._exit(3)
        if manifest == b"refuse":
            error = {"what": "it is no replacement", "where": name, "remedy": "Verify."}
            return 403, {"error": error}
        self.record(f"replace {name} {encoder}")
        return 200, {}

    def set_traffic(self, body: dict[str, Any]) -> tuple[int, Any]:
        for name in (body["stable"], body["canary"]):
            if name is not None and name not in self.revisions:
                return 409, {"error": {"what": "not loaded", "where": name, "remedy": ""}}
        self.traffic = body
        self.record(f"traffic {body['stable']} {body['canary']} {body['percent']}")
        return 200, {}

    def status(self) -> dict[str, Any]:
        revisions = [
            {key: item[key] for key in ("name", "bundle", "ready", "message")}
            for item in self.revisions.values()
        ]
        return {
            "service": self.arguments.service, "traffic": self.traffic, "revisions": revisions,
        }  # fmt: skip

    def stats(self) -> list[dict[str, Any]]:
        return [
            {"name": name, "requests": 3, "errors": 1, "degraded": 0, "latency_ms": [1.0, 2.5]}
            for name in self.revisions
        ]


def make_handler(gateway: Gateway, admin: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self, code: int, document: Any) -> None:
            data = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def handle_admin(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"null")
            if self.headers.get("Authorization") != f"Bearer {gateway.token}":
                self.answer(401, {})
                return
            with gateway.lock:
                self.answer(*self.dispatch(body))

        def dispatch(self, body: Any) -> tuple[int, Any]:
            match self.command, self.path.split("/")[2:]:
                case "GET", ["status"]:
                    return 200, gateway.status()
                case "GET", ["stats"]:
                    return 200, gateway.stats()
                case "POST", ["revisions"]:
                    return gateway.load(body)
                case "DELETE", ["revisions", name]:
                    return gateway.unload(name)
                case "PUT", ["revisions", name, "engines", encoder]:
                    return gateway.replace(name, encoder, body)
                case "PUT", ["traffic"]:
                    return gateway.set_traffic(body)
            return 404, {}

        def do_GET(self) -> None:
            if admin:
                self.handle_admin()
            else:
                ready = self.path == "/v2/health/ready" and gateway.traffic["stable"]
                self.answer(200 if ready else 503, {})

        do_POST = do_PUT = do_DELETE = handle_admin

        def log_message(self, *_: Any) -> None:
            return

    return Handler


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("service", "state-file", "token-file", "trusted-keys", "engines"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("rest-port", "grpc-port", "admin-port"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--journal")
    parser.add_argument("--misbehave", choices=("fail", "hang", "ignore-term"))
    return parser.parse_args()


def main() -> None:
    arguments = parse()
    gateway = Gateway(arguments)
    if arguments.misbehave == "fail":
        sys.exit(f"cannot read the settings, token {gateway.token}")
    if arguments.misbehave == "hang":
        time.sleep(600)
    address = "127.0.0.1"
    rest = ThreadingHTTPServer((address, arguments.rest_port), make_handler(gateway, admin=False))
    admin = ThreadingHTTPServer((address, arguments.admin_port), make_handler(gateway, admin=True))
    for server in (rest, admin):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    done = threading.Event()
    stop = (lambda *_: None) if arguments.misbehave == "ignore-term" else (lambda *_: done.set())
    signal.signal(signal.SIGTERM, stop)
    state = {
        "pid": os.getpid(),
        "rest_url": f"http://{address}:{rest.server_port}",
        "grpc_address": f"{address}:{arguments.grpc_port or 1}",
        "admin_url": f"http://{address}:{admin.server_port}",
    }
    staged = Path(arguments.state_file + ".part")
    staged.write_text(json.dumps(state))
    staged.replace(arguments.state_file)
    done.wait()
    gateway.record("drained")


if __name__ == "__main__":
    main()
