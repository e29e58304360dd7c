"""`modalgate serve`: a released version in the foreground, without the canary."""

from __future__ import annotations

import os
import secrets
import sys
from typing import Annotated

import typer

from flows.cli.output import answer, console
from flows.release.bundle import revision_of
from flows.review import registered, review_of
from flows.workspace import SERVE_COMMAND, Workspace
from validators.review.verdict import require_approval


def serve(
    service: Annotated[str, typer.Argument(help="The service, as in the pipeline file.")],
    version: Annotated[
        str | None, typer.Argument(help="The version number; default: the newest.")
    ] = None,
    rest_port: Annotated[int, typer.Option(min=0, max=65535, help="0: the system chooses.")] = 0,
    grpc_port: Annotated[int, typer.Option(min=0, max=65535, help="0: the system chooses.")] = 0,
) -> None:
    """Serve an approved version on this terminal until it is interrupted; it drains, then ends."""
    command: list[str] = []

    def work() -> dict[str, str]:
        workspace = Workspace.open()
        found = registered(workspace, service, version)
        require_approval(review_of(workspace, found), workspace.clock.wall_ns() / 1e9)
        revision = revision_of(workspace, found.bundle)
        folder = workspace.home.folder("serve", service)
        token = folder / "token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_urlsafe(32))
        command.extend(
            [
                *SERVE_COMMAND,
                *("--service", service, "--bundle", revision.bundle_path, "--name", revision.name),
                *("--rest-port", str(rest_port), "--grpc-port", str(grpc_port)),
                *("--admin-port", "0", "--state-file", str(folder / "gateway.json")),
                *("--token-file", str(token), "--trusted-keys", str(workspace.trusted_keys)),
            ]
        )
        return {"service": service}

    try:
        answer(work, lambda _: None, as_json=False)
    except typer.Exit as ended:
        if ended.exit_code or not command:
            raise
    console.print(f"serving {service}; end with Ctrl-C")
    sys.stdout.flush()
    os.execv(command[0], command)  # noqa: S606 the gateway takes this process's place


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)
