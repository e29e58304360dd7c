"""`modalgate serve`: a released version in the foreground, without the canary."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import time
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.output import Document, answer, console
from flows.release.bundle import revision_of
from flows.review import Registered, registered, require_certificate, review_of
from flows.workspace import SERVE_COMMAND, Workspace
from validators.contracts.builds import BuildState
from validators.contracts.errors import Unavailable
from validators.review.verdict import require_approval

STATE_FILE = "gateway.json"
_LOOK_S = 0.1


def serve(
    service: Annotated[str, typer.Argument(help="The service, as in the pipeline file.")],
    version: Annotated[
        str | None, typer.Argument(help="The version number; default: the newest.")
    ] = None,
    rest_port: Annotated[int, typer.Option(min=0, max=65535, help="0: the system chooses.")] = 0,
    grpc_port: Annotated[int, typer.Option(min=0, max=65535, help="0: the system chooses.")] = 0,
) -> None:
    """Serve an approved version on this terminal until it is interrupted; it drains, then ends."""

    def work() -> Document:
        workspace = Workspace.open()
        found = registered(workspace, service, version)
        require_approval(review_of(workspace, found), workspace.clock.wall_ns() / 1e9)
        require_certificate(workspace, found)
        folder = workspace.home.folder("serve", found.version.model)
        ports = ("--rest-port", str(rest_port), "--grpc-port", str(grpc_port), "--admin-port", "0")
        command = [*_command(workspace, found, folder), *ports]
        _hint(workspace, service)
        code = _run(command, folder / STATE_FILE)
        if code:
            raise Unavailable(
                f"the gateway ended with exit code {code}",
                where=service,
                remedy="Read its last line above; choose another port where one is taken.",
            )
        return {"service": service}

    answer(work, lambda _: None, as_json=False)


def _hint(workspace: Workspace, service: str) -> None:
    states = [build.state for build in workspace.builds.builds(service)]
    if waiting := states.count(BuildState.WAITING):
        console.print(f"{waiting} shapes wait for an engine: modalgate engines build")


def _command(workspace: Workspace, found: Registered, folder: Path) -> list[str]:
    revision = revision_of(workspace, found.bundle)
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_urlsafe(32))
    return [
        *SERVE_COMMAND,
        *("--service", revision.service, "--bundle", revision.bundle_path),
        *("--name", revision.name, "--state-file", str(folder / STATE_FILE)),
        *("--token-file", str(token), "--trusted-keys", str(workspace.trusted_keys)),
        *("--engines", str(workspace.home.folder("deployments", revision.service, "engines"))),
        *workspace.serving_options,
    ]


def _run(command: list[str], state_file: Path) -> int:
    """The gateway as a child of this terminal; says where it serves once it does."""
    state_file.unlink(missing_ok=True)
    with subprocess.Popen(command) as child:
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        try:
            while child.poll() is None and not state_file.exists():
                time.sleep(_LOOK_S)
            if child.poll() is None:
                found = json.loads(state_file.read_text())
                console.print(f"REST  {found['rest_url']}/v1/answer")
                console.print(f"gRPC  {found['grpc_address']}   (end with Ctrl-C)")
            return child.wait()
        except KeyboardInterrupt:
            return child.wait()  # the terminal told the child as well: it drains


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)
