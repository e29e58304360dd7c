"""The gateway as a process: `python -m flows.serve`. Wires infra's clock and keys to it.

Writes a JSON state file when it takes requests: pid, rest_url, grpc_address, admin_url. SIGTERM and
SIGINT drain it. Exit codes: 0 drained, 2 it could not come up.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import functools
import json
import logging
import os
import signal
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uvloop

from flows.drift_watch.metrics import DriftCollector
from flows.drift_watch.places import STATE_FILE
from flows.live_windows import flush_recorded, keep_recording, may_record
from flows.shape_windows import flush_windows
from infra.builds import FolderQueue
from infra.clocks import SystemClock
from infra.keys.file import open_verifier
from infra.keys.secret import open_secret
from infra.local_target.overlay import find_engine
from infra.windows import WindowFolder
from services.engines.elastic.filing import BackgroundFiling
from services.engines.load import load_engine
from services.fusion.adapters import load_adapter
from services.gateway.encoders import Loaders, SealedEngine
from services.gateway.gateway import Addresses, Gateway
from services.gateway.scheduler import QueueLimits
from services.gateway.settings import GatewaySettings
from services.preprocess import make_preprocessor
from services.preprocess.transcript import make_transcriber
from validators.contracts.errors import BadInput, ModalgateError, NotFound, Refused
from validators.contracts.ports import Clock, RunningEngine, Verifier

EXIT_CANNOT_START = 2
_MAX_TOKEN_BYTES = 4096
_PARENT_LOOK_S = 1.0
_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def make_loaders(verifier: Verifier, threads: int = 1) -> Loaders:
    """The real parts of a revision: engines, preprocessing, adapters, transcripts."""

    def load(sealed: bytes, path: Path) -> RunningEngine:
        return load_engine(sealed, path, verifier=verifier, threads=threads)

    return Loaders(verifier, load, make_preprocessor, load_adapter, make_transcriber)


def find_replacement(folder: Path, revision: str, encoder: str) -> SealedEngine | None:
    """The engine that lies beside a bundle's, where `infra.local_target.overlay` puts it.

    Raises:
        BadInput, Unavailable: the folder cannot be used.  NotFound: a file of it is missing.
    """
    placed = find_engine(folder, revision, encoder)
    if placed is None:
        return None
    try:
        return placed.manifest.read_bytes(), placed.engine
    except OSError as error:
        raise NotFound(
            f"its manifest cannot be read: {error.strerror}", where=placed.manifest.name
        ) from error


def read_token(path: Path) -> str:
    """The bearer token of the control plane.

    Raises:
        BadInput: no such file, empty, too long.  Refused: others than its owner may read it.
    """
    try:
        mode = path.stat().st_mode
        token = path.read_bytes()[: _MAX_TOKEN_BYTES + 1].decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            "the token file cannot be read", where=path.name, remedy="Write a token into it, 0600."
        ) from error
    if stat.S_IMODE(mode) & 0o077:
        raise Refused(
            "others may read the token file", where=path.name, remedy="chmod 600 the file."
        )
    if not 16 <= len(token) <= _MAX_TOKEN_BYTES:
        raise BadInput(
            "the token is shorter than 16 characters, or too long",
            where=path.name,
            remedy="Write a random token into the file.",
        )
    return token


async def serve(options: argparse.Namespace) -> None:
    """Bring the gateway up, say so, and drain it when told to.

    Raises:
        ModalgateError: it cannot come up; nothing is left listening.
    """
    clock, token = SystemClock(), read_token(options.token_file)
    loaders = make_loaders(open_verifier(options.trusted_keys), options.engine_threads)
    if options.engines is not None:
        found = functools.partial(find_replacement, options.engines)
        loaders = dataclasses.replace(loaders, find_replacement=found)
    if options.build_queue is not None:
        filing = BackgroundFiling(FolderQueue(options.build_queue, clock))
        loaders = dataclasses.replace(loaders, filing=filing)
    gateway = Gateway(
        options.service,
        token,
        loaders,
        clock,
        settings=_settings(options),
        addresses=Addresses(options.host, options.rest_port, options.grpc_port, options.admin_port),
    )
    if options.watch is not None:
        state = options.watch / options.service / STATE_FILE
        gateway.handlers.metrics.registry.register(DriftCollector(options.service, state))
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if options.bundle is not None:
        await gateway.serve_first(options.name, options.bundle)
    await gateway.start()
    write_state(
        options.state_file,
        {
            "pid": os.getpid(),
            "rest_url": gateway.rest_url,
            "grpc_address": gateway.grpc_address,
            "admin_url": gateway.admin_url,
        },
    )
    async with asyncio.TaskGroup() as watching:
        if options.parent is not None:
            watching.create_task(_end_with(options.parent, stop))
        if options.shapes is not None:
            folder = options.shapes / options.service
            watching.create_task(_record(gateway, folder, options.shapes_every_s, stop))
        if gateway.recorder is not None:
            windows = _windows(options, clock)
            every_s = options.windows_every_s
            watching.create_task(keep_recording(gateway.recorder, windows, every_s, stop))
        await stop.wait()
    await gateway.drain()
    if options.shapes is not None:
        flush_windows(gateway.revisions, options.shapes / options.service)
    if gateway.recorder is not None:
        flush_recorded(gateway.recorder, _windows(options, clock), everything=True)
    if loaders.filing is not None:
        loaders.filing.close()


def _windows(options: argparse.Namespace, clock: Clock) -> WindowFolder:
    service = options.service
    return WindowFolder(options.windows / service, service, open_secret(options.windows_key), clock)


async def _record(gateway: Gateway, folder: Path, every_s: float, stop: asyncio.Event) -> None:
    """A window of recorded shapes now and then; what is left is written when all is drained."""
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), every_s)
            return
        await asyncio.to_thread(flush_windows, gateway.revisions, folder)


async def _end_with(parent: int, stop: asyncio.Event) -> None:
    """Drain once the process that started this one is gone, however it went."""
    while os.getppid() == parent and not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _PARENT_LOOK_S)
    stop.set()


def write_state(path: Path, state: dict[str, object]) -> None:
    """Whole or absent: who waits for the file never reads half of it."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(state, file)
    Path(name).replace(path)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line. `MODALGATE_GATEWAY_WORKERS` and the like give defaults of the knobs."""
    parser = argparse.ArgumentParser(prog="python -m flows.serve", description="Serve a service.")
    add = parser.add_argument
    add("--service", required=True)
    add("--state-file", type=Path, required=True, help="where to say that it is up")
    add("--token-file", type=Path, required=True, help="bearer token of the admin port, 0600")
    add("--trusted-keys", type=Path, required=True, help="public keys that releases are signed by")
    add("--bundle", type=Path, help="a materialised bundle to serve at once")
    add("--name", help="the revision's name; with --bundle")
    add("--engines", type=Path, help="engines that replace those of bundles, by revision")
    add("--build-queue", type=Path, help="where engines for uncovered shapes are asked for")
    add("--shapes", type=Path, help="where the shapes of each service's encoders are recorded")
    add("--windows", type=Path, help="where vectors and measures of live requests are recorded")
    add("--windows-key", type=Path, help="the secret that seals them; made where it is missing")
    add("--watch", type=Path, help="where the drift watch keeps its state, for the metrics")
    add("--host", default="127.0.0.1", help="of REST and gRPC; the admin port is always loopback")
    add("--parent", type=int, help="the starting process's id: drain when it is gone")
    for port in ("--rest-port", "--grpc-port", "--admin-port"):
        add(port, type=_port, default=0, help="0: the system chooses")
    default = GatewaySettings()
    knob = functools.partial(_add_knob, parser)
    knob("workers", int, default.workers, "engine calls at one time")
    knob("engine-threads", int, 1, "threads of one engine call")
    knob("queue-rows", int, default.queue.rows, "rows that may wait")
    knob("default-timeout-ms", float, None, "of requests that name none; else the SLO's P99")
    knob("shapes-every-s", float, 300.0, "a window of recorded shapes")
    knob("windows-every-s", float, 30.0, "a look for windows of live requests to write down")
    knob("drain-grace-s", float, default.drain_grace_s, "not ready, and still taking requests")
    options = parser.parse_args(arguments)
    if (options.bundle is None) != (options.name is None):
        parser.error("--bundle and --name belong together")
    if (options.windows is None) != (options.windows_key is None):
        parser.error("--windows and --windows-key belong together")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    logging.basicConfig(level=logging.INFO, format=_LOG_FORMAT, stream=sys.stderr)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(options))
    except ModalgateError as error:
        print(json.dumps({"status": "failed", "error": error.document()}), file=sys.stderr)
        return EXIT_CANNOT_START
    return 0


def _settings(options: argparse.Namespace) -> GatewaySettings:
    return GatewaySettings(
        workers=options.workers,
        queue=QueueLimits(rows=options.queue_rows),
        default_timeout_ms=options.default_timeout_ms,
        drain_grace_s=options.drain_grace_s,
        record=options.windows is not None and may_record(os.environ),
    )


def _add_knob(
    parser: argparse.ArgumentParser,
    name: str,
    kind: type[int] | type[float],
    default: float | None,
    text: str,
) -> None:
    variable = f"MODALGATE_GATEWAY_{name.upper().replace('-', '_')}"

    def parse(value: str) -> float:
        number = kind(value)
        if not 0 < number < 1e9:
            raise argparse.ArgumentTypeError(f"{value} is not above 0")
        return number

    parser.add_argument(
        f"--{name}",
        type=parse,
        default=os.environ.get(variable, default),
        help=f"{text} [{variable}]",
    )


def _port(value: str) -> int:
    port = int(value)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{value} is not a port")
    return port


if __name__ == "__main__":
    sys.exit(main())
