"""The local deployment target: one gateway process per service on this machine.

It keeps the port that KServe implements: revisions side by side, a canary's share of traffic,
promotion and roll-back. What should run is a document on disk, so whatever dies (the caller, the
gateway, the machine), the next verb brings the gateway to what the document says.

    <root>/<service>/lock              held by whoever changes the service
    <root>/<service>/deployment.json   the desired state; revisions pinned by bundle digest
    <root>/<service>/process.json      which process serves: launch, pid, start time
    <root>/<service>/token             bearer token of the gateway's admin interface, 0600
    <root>/<service>/gateway-N.json    written by the gateway of launch N: pid and ports
    <root>/<service>/gateway-N.log     its output
"""

from infra.local_target.target import LocalTarget

__all__ = ["LocalTarget"]
