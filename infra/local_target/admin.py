"""The gateway's admin interface as calls: JSON over loopback HTTP with a bearer token."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

import httpx
import msgspec

from infra.local_target.desired import PinnedRevision
from infra.local_target.overlay import PlacedEngine
from validators.contracts.deployment import RevisionStats
from validators.contracts.errors import (
    BadInput,
    Conflict,
    ModalgateError,
    NotFound,
    Overloaded,
    Refused,
    TooLarge,
    Unavailable,
    Unsupported,
)

T = TypeVar("T")

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 30.0

_ERRORS: dict[int, type[ModalgateError]] = {
    400: BadInput,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    422: Unsupported,
    429: Overloaded,
}


@dataclass(frozen=True, slots=True)
class Traffic:
    stable: str | None
    canary: str | None
    percent: int


@dataclass(frozen=True, slots=True)
class LoadedRevision:
    name: str
    bundle: str
    ready: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class GatewayStatus:
    service: str
    traffic: Traffic
    revisions: tuple[LoadedRevision, ...]

    def find(self, name: str) -> LoadedRevision | None:
        return next((item for item in self.revisions if item.name == name), None)


class AdminClient:
    """One gateway's admin interface. `load_timeout_s` bounds the loading of a bundle's engines."""

    def __init__(self, admin_url: str, token: str, *, load_timeout_s: float) -> None:
        self._load_timeout_s = load_timeout_s
        self._client = httpx.Client(
            base_url=admin_url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            trust_env=False,  # never through a proxy: the token stays on this machine
        )

    def __enter__(self) -> AdminClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def status(self) -> GatewayStatus:
        return self._decode(self._call("GET", "/admin/status"), GatewayStatus)

    def stats(self) -> tuple[RevisionStats, ...]:
        return self._decode(self._call("GET", "/admin/stats"), tuple[RevisionStats, ...])

    def load(self, revision: PinnedRevision) -> None:
        """Returns when the revision is ready; on an error nothing of it stays loaded."""
        body = {"name": revision.name, "bundle": revision.bundle, "path": revision.path}
        self._call("POST", "/admin/revisions", body, timeout_s=self._load_timeout_s)

    def unload(self, name: str) -> None:
        """Drain and unload; what is not there is fine."""
        try:
            self._call("DELETE", f"/admin/revisions/{name}", timeout_s=self._load_timeout_s)
        except NotFound:
            return

    def replace_engine(self, name: str, encoder: str, placed: PlacedEngine) -> None:
        """Swap an encoder's engine of a loaded revision; returns when the new one serves.

        On an error the old one goes on serving.
        """
        body = {"manifest": str(placed.manifest), "engine": str(placed.engine)}
        path = f"/admin/revisions/{name}/engines/{encoder}"
        self._call("PUT", path, body, timeout_s=self._load_timeout_s)

    def set_traffic(self, traffic: Traffic) -> None:
        body = {"stable": traffic.stable, "canary": traffic.canary, "percent": traffic.percent}
        self._call("PUT", "/admin/traffic", body)

    def _call(
        self, method: str, path: str, body: Any = None, timeout_s: float = ANSWER_TIMEOUT_S
    ) -> httpx.Response:
        timeout = httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S)
        try:
            response = self._client.request(method, path, json=body, timeout=timeout)
        except httpx.TransportError as error:
            raise Unavailable(
                f"the gateway's admin interface does not answer: {type(error).__name__}",
                where=f"{method} {path}",
                remedy="Run the command again: a gateway that died is started anew.",
            ) from error
        if response.is_success:
            return response
        raise _error_of(response, f"{method} {path}")

    def _decode(self, response: httpx.Response, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(response.content, type=kind)
        except msgspec.MsgspecError as error:
            raise Unavailable(
                f"the gateway's admin interface answered something else: {error}",
                where=str(response.url.path),
                remedy="Use a gateway of the same version as this command.",
            ) from error


def is_ready(rest_url: str) -> bool:
    """Whether the gateway says it can serve (Open Inference Protocol, GET v2/health/ready)."""
    try:
        answer = httpx.get(
            f"{rest_url}/v2/health/ready", timeout=CONNECT_TIMEOUT_S, trust_env=False
        )
    except httpx.TransportError:
        return False
    return answer.status_code == httpx.codes.OK


def _error_of(response: httpx.Response, where: str) -> ModalgateError:
    """The gateway's `error` document as the error it stands for."""
    try:
        document = msgspec.json.decode(response.content, type=dict[str, dict[str, str]])["error"]
    except (msgspec.MsgspecError, KeyError):
        document = {}
    default = Unavailable if response.status_code >= 500 else Refused
    kind = _ERRORS.get(response.status_code, default)
    return kind(
        document.get("what") or f"the gateway answered {response.status_code}",
        where=document.get("where") or where,
        remedy=document.get("remedy", ""),
    )
