"""What is written down of a gateway process, by us and by itself."""

from __future__ import annotations

from dataclasses import dataclass

from infra.local_target.processes import ProcessIdentity

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Ports:
    """0 lets the system choose."""

    rest: int = 0
    grpc: int = 0


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """What process.json holds. `process` is None from before the start until the pid is known."""

    launch: int
    process: ProcessIdentity | None = None
    ports: Ports = Ports()


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What the gateway writes into its state file once it listens (other keys are its own)."""

    pid: int
    rest_url: str
    grpc_address: str
    admin_url: str

    @property
    def ports(self) -> Ports:
        return Ports(_port_of(self.rest_url), _port_of(self.grpc_address))


def _port_of(address: str) -> int:
    """The port at the end of a URL or an address; 0 where there is none."""
    port = address.rpartition(":")[2].rstrip("/")
    return int(port) if port.isdigit() else 0
