"""Why a request over several branches got no answer, in words its sender can act on. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.gateway.executor import expired_error
from validators.contracts.errors import BadInput, DeadlineExceeded


def explain_failed(
    failed: Sequence[str], errors: Sequence[BaseException | None]
) -> BaseException | None:
    """What failed; where nothing did and a branch is silent, that nothing was recognised."""
    for error in errors:
        if error is not None:
            return error
    if not failed:
        return None
    return BadInput(
        "nothing was recognised in the request",
        where=", ".join(failed),
        remedy="Send clearer or longer input.",
    )


def explain_late(
    late: Sequence[str], timeouts_ms: Mapping[str, float | None], waited_for_all: bool
) -> DeadlineExceeded:
    """The clock's doing: the request's deadline, or the time that the pipeline gives a branch.

    `waited_for_all`: a late branch was waited for until the request's deadline.
    """
    own = {name: timeout_ms for name in late if (timeout_ms := timeouts_ms[name]) is not None}
    if waited_for_all or not own:
        return expired_error()
    told = " and ".join(f"{name} ({timeout_ms:g} ms)" for name, timeout_ms in own.items())
    keys = " and ".join(f"branches.{name}.timeout_ms" for name in own)
    branches, their = ("branch", "its") if len(own) == 1 else ("branches", "their")
    return DeadlineExceeded(
        f"the {branches} {told} ran out of {their} own time, before the request did",
        where=keys,
        remedy=f"Raise {keys} in the pipeline, or send less.",
    )
