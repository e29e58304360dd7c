"""`LocalTarget`: the verbs of the deployment port over one gateway process per service."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from infra.files import disk_faults, locked, make_private_folder, write_atomically
from infra.local_target import desired as transitions
from infra.local_target.admin import AdminClient, GatewayStatus, is_ready
from infra.local_target.checks import (
    check_bundle,
    check_name,
    check_on_disk,
    nothing_deployed,
)
from infra.local_target.convergence import converge, load_missing
from infra.local_target.desired import DesiredState
from infra.local_target.gateway import POLL_S, GatewayLaunch, GatewayProcess
from infra.local_target.overlay import (
    PlacedEngine,
    find_engine,
    keep_only,
    placed_engines,
    placing,
)
from infra.local_target.pinned import Pin, read_desired, read_pins
from infra.local_target.records import Endpoints, Ports
from infra.local_target.report import absent, describe
from validators.contracts.deployment import DeploymentStatus, Revision, RevisionStats
from validators.contracts.digest import canonical_json
from validators.contracts.errors import ModalgateError, Unavailable
from validators.contracts.ports import Clock
from validators.rollout.probe import mark_probe


class LocalTarget:
    """Serves revisions by one gateway process per service on this machine.

    Args:
        root: the folder that holds a folder per service.
        command: starts a gateway; `--service`, `--rest-port`, `--grpc-port`, `--admin-port`,
            `--state-file`, `--token-file`, `--trusted-keys` and `--engines` are added.
        clock: for timeouts.
        trusted_keys: the public keys the gateway trusts bundles by.
        rest_port, grpc_port: 0 lets the system choose; a restart keeps what it chose.
        start_timeout_s, load_timeout_s, drain_timeout_s: to listen, to load a bundle, to drain.
        sleep: waits between looks.
    """

    def __init__(
        self,
        root: Path,
        command: Sequence[str],
        clock: Clock,
        *,
        trusted_keys: Path,
        rest_port: int = 0,
        grpc_port: int = 0,
        start_timeout_s: float = 120.0,
        load_timeout_s: float = 300.0,
        drain_timeout_s: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._root = root.absolute()
        self._launch = GatewayLaunch(
            tuple(command),
            trusted_keys.absolute(),
            Ports(rest_port, grpc_port),
            start_timeout_s,
            drain_timeout_s,
        )
        self._load_timeout_s = load_timeout_s
        self._clock = clock
        self._sleep = sleep

    @property
    def name(self) -> str:
        return "local"

    def apply(self, revision: Revision) -> DeploymentStatus:
        """Bring a revision up beside what serves: the first takes all traffic, a later one none.

        Returns when it is ready. What the gateway refuses to load leaves the service as it was.

        Raises:
            Refused: the folder holds another bundle, or the gateway does not trust it.
            Conflict: another canary has traffic.
            Unavailable: the gateway does not start or become ready; the log's reason is named.
        """
        check_name(revision.name, "revision")
        check_bundle(revision)
        with self._changing(revision.service) as gateway:
            before = self._forget_lost(self._read(revision.service))
            after = transitions.admit(before, revision)
            try:
                endpoints = gateway.ensure()
                with self._admin(gateway, endpoints) as admin:
                    load_missing(admin, after)  # first, so that a refused one is never desired
                    self._write(after)
                    converge(admin, after)
                self._await_ready(gateway, endpoints)
            except ModalgateError:
                self._restore(before, gateway)
                raise
            return self._describe(after, gateway)

    def status(self, service: str) -> DeploymentStatus:
        """What serves now. Starts nothing: a dead gateway is reported as DEGRADED."""
        check_name(service, "service")
        state = self._read(service)
        if state.stable is None:
            return absent(service, self.name)
        return self._describe(state, self._gateway(service))

    def set_canary(self, service: str, percent: int) -> DeploymentStatus:
        """Give the canary `percent` of the traffic, atomically."""
        return self._transition(service, lambda state: transitions.weigh_canary(state, percent))

    def promote(self, service: str) -> DeploymentStatus:
        """Make the canary the stable revision; the old stable stays pinned as known-good."""
        return self._transition(service, transitions.settle_on_canary)

    def roll_back(self, service: str, reason: str) -> DeploymentStatus:
        """Give all traffic back to the stable revision, then unload the canary.

        Without a canary the service returns to the known-good revision before the stable one.
        Rolling back again changes nothing until a revision is applied.

        Raises:
            NotFound: nothing is deployed, or the known-good bundle is no longer on disk.
            Conflict: there is no known-good revision.
        """

        def go_back(state: DesiredState) -> DesiredState:
            after = transitions.withdraw(state, reason)
            check_on_disk(after)
            return after

        return self._transition(service, go_back)

    def reconcile(self, service: str) -> DeploymentStatus:
        """Bring the gateway to the desired state: start it, load what is missing, set traffic."""
        return self._transition(service, lambda state: state)

    def stats(self, service: str) -> Sequence[RevisionStats]:
        """Counters of every loaded revision.

        Raises:
            NotFound: nothing is deployed.  Unavailable: the gateway is not running.
        """
        check_name(service, "service")
        if not self._read(service).revisions:
            raise nothing_deployed(service)
        gateway = self._gateway(service)
        endpoints = gateway.endpoints()
        if gateway.find() is None or endpoints is None:
            raise gateway.failure("is not running")
        with self._admin(gateway, endpoints) as admin:
            return admin.stats()

    def mark_probe(self, service: str, body: bytes) -> str:
        """What tells the gateway that a request with this body is the platform's own.

        Raises:
            NotFound: no gateway was ever started.
        """
        check_name(service, "service")
        try:
            return mark_probe(self._gateway(service).token, body)
        except FileNotFoundError as error:
            raise nothing_deployed(service) from error

    def replace_engine(
        self, service: str, revision: str, encoder: str, manifest: bytes, engine: Path
    ) -> bool:
        """Serve a revision's encoder with another engine, now and after every start.

        The engine lies beside the bundle, which stays as it was approved. What the gateway refuses
        is taken back, and the engine before goes on serving.

        Args:
            revision: its name, loaded or not.
            manifest: the sealed manifest's document.

        Returns: whether a gateway serves the new engine now; else the next start takes it.

        Raises:
            Refused, BadInput: the gateway does not take it.
            Unavailable: the gateway did not answer, or the disk is full; nothing has changed.
        """
        check_name(revision, "revision")
        with self._changing(service) as gateway:
            try:
                with placing(gateway.engines, revision, encoder, manifest, engine) as placed:
                    return self._push(gateway, revision, encoder, placed)
            except ModalgateError:
                self._restore(self._read(service), gateway)
                raise

    def replaced_engine(self, service: str, revision: str, encoder: str) -> PlacedEngine | None:
        """The engine that lies beside the bundle, if one does."""
        check_name(service, "service")
        return find_engine(self._gateway(service).engines, revision, encoder)

    def pins(self) -> tuple[Pin, ...]:
        """Every revision that serves, stands by or is kept to go back to, of all services."""
        return read_pins(self._root)

    def replacements(self, service: str, revision: str) -> tuple[PlacedEngine, ...]:
        """All engines that lie beside the bundle of a revision."""
        check_name(service, "service")
        return placed_engines(self._gateway(service).engines, revision)

    def keep_engines(self, service: str, revisions: Collection[str], older_than_ns: int) -> None:
        """Remove the engines beside the bundles of other revisions, if placed before that time."""
        with self._changing(service) as gateway:
            keep_only(gateway.engines, revisions, older_than_ns)

    def stop(self, service: str, *, forget: bool = False) -> None:
        """End the gateway process: SIGTERM, drain, SIGKILL.

        The stable revision stays pinned, and applying one starts the service again with it; with
        `forget` the next revision that is applied is the first.
        """
        check_name(service, "service")
        if not (self._root / service).is_dir():
            return
        with self._changing(service) as gateway:
            self._write(transitions.halt(self._read(service), forget=forget))
            gateway.stop()

    def _transition(
        self, service: str, change: Callable[[DesiredState], DesiredState]
    ) -> DeploymentStatus:
        """Write the next desired state, then make it so; a gateway that died is started anew."""
        with self._changing(service) as gateway:
            before = self._read(service)
            if before.stable is None or before.stopped:
                raise nothing_deployed(service)
            after = change(before)
            self._write(after)
            endpoints = gateway.ensure()
            with self._admin(gateway, endpoints) as admin:
                load_missing(admin, after)
                converge(admin, after)
            self._await_ready(gateway, endpoints)
            return self._describe(after, gateway)

    def _push(
        self, gateway: GatewayProcess, revision: str, encoder: str, placed: PlacedEngine
    ) -> bool:
        endpoints = gateway.endpoints()
        if gateway.find() is None or endpoints is None:
            return False
        with self._admin(gateway, endpoints) as admin:
            if admin.status().find(revision) is None:
                return False
            admin.replace_engine(revision, encoder, placed)
        return True

    def _restore(self, before: DesiredState, gateway: GatewayProcess) -> None:
        """A revision that took the gateway down with it must not take the service down."""
        if before.stable is None or before.stopped or gateway.find() is not None:
            return
        with contextlib.suppress(ModalgateError):  # the first error is the one to report
            self._write(before)
            with self._admin(gateway, gateway.ensure()) as admin:
                load_missing(admin, before)
                converge(admin, before)

    def _describe(self, state: DesiredState, gateway: GatewayProcess) -> DeploymentStatus:
        process, endpoints = gateway.find(), gateway.endpoints()
        seen: GatewayStatus | None = None
        problem = ""
        if process is not None and endpoints is None:
            problem = "the gateway process is starting"
        elif process is None or endpoints is None:
            problem = "the gateway process is not running; reconcile or apply starts it again"
        else:
            try:
                with self._admin(gateway, endpoints) as admin:
                    seen = admin.status()
            except Unavailable as error:
                problem = error.what
        pid = None if process is None else process.pid
        return describe(state, self.name, seen, endpoints=endpoints, pid=pid, problem=problem)

    def _await_ready(self, gateway: GatewayProcess, endpoints: Endpoints) -> None:
        deadline_ns = self._clock.monotonic_ns() + int(self._launch.start_timeout_s * 1e9)
        while not is_ready(endpoints.rest_url):
            if gateway.find() is None:
                raise gateway.failure("ended before it was ready")
            if self._clock.monotonic_ns() >= deadline_ns:
                raise gateway.failure(f"was not ready within {self._launch.start_timeout_s:g} s")
            self._sleep(POLL_S)

    @contextlib.contextmanager
    def _changing(self, service: str) -> Iterator[GatewayProcess]:
        check_name(service, "service")
        folder = self._root / service
        with disk_faults("the deployment folder", str(folder), "Make the folder usable."):
            make_private_folder(folder)
            with locked(folder / "lock"):
                yield self._gateway(service)

    def _gateway(self, service: str) -> GatewayProcess:
        return GatewayProcess(self._root / service, service, self._launch, self._clock, self._sleep)

    def _admin(self, gateway: GatewayProcess, endpoints: Endpoints) -> AdminClient:
        return AdminClient(endpoints.admin_url, gateway.token, load_timeout_s=self._load_timeout_s)

    def _read(self, service: str) -> DesiredState:
        return read_desired(self._root, service)

    def _write(self, state: DesiredState) -> None:
        write_atomically(self._root / state.service / "deployment.json", canonical_json(state))

    def _forget_lost(self, state: DesiredState) -> DesiredState:
        """A stopped service whose bundle was deleted since starts from nothing."""
        if state.stopped and state.stable and not Path(state.stable.path).is_dir():
            return DesiredState(state.service)
        return state
