"""The queue of background builds, worked off one by one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace

from flows.builds.fulfilment import fulfil
from flows.builds.losses import reopen_lost
from flows.interruption import Interrupted
from flows.locks import exclusive
from flows.progress import reporter
from flows.retention import tidied
from flows.room import has_room, require_room
from flows.workspace import Workspace
from infra.files import disk_faults
from services.children.errors import BuildCancelled
from services.children.process import Cancel
from validators.contracts.builds import BuildState, QueuedBuild, ShapeRequest
from validators.contracts.errors import (
    Blocked,
    Conflict,
    DeadlineExceeded,
    DiskFull,
    ModalgateError,
    Overloaded,
    Unavailable,
)

AGAIN = (Unavailable, Overloaded, DeadlineExceeded, Conflict)
"""What another try can mend; everything else says no to the request itself."""

_REMEDY = "Free some disk space; the request is tried again."


@dataclass(frozen=True, slots=True)
class EndedBuild:
    """What became of one request.

    live     a gateway serves its engine now
    blocked  the parity gate said FAIL
    """

    request: ShapeRequest
    state: BuildState
    message: str = ""
    live: bool = False
    blocked: bool = False


def drain(workspace: Workspace, cancel: Cancel | None = None) -> list[EndedBuild]:
    """Try every request that waits, once, oldest first. One drain at a time per state folder.

    What was done before and would not be served any more waits again.

    Raises:
        Conflict: another process drains the queue.  Unavailable: the queue's disk is full.
    """
    lock = workspace.home.lock("builds")
    ended: list[EndedBuild] = []
    with exclusive(lock, "a background build"), ExitStack() as later:
        reopen_lost(workspace)
        while cancel is None or not cancel():
            taken = workspace.builds.take()
            if taken is None:
                break
            ended.append(_work_off(workspace, taken, cancel, later.callback))
    states = {build.request.key: build.state for build in workspace.builds.builds()}
    return [replace(item, state=states.get(item.request.key, item.state)) for item in ended]


def reopen_failed(workspace: Workspace) -> int:
    """Let every FAILED request wait again, with all its tries; how many those were."""
    queue = workspace.builds
    failed = [build.request for build in queue.builds() if build.state is BuildState.FAILED]
    return sum(queue.reopen(request) for request in failed)


def _work_off(
    workspace: Workspace, taken: QueuedBuild, cancel: Cancel | None, later: Callable[..., object]
) -> EndedBuild:
    """One request to its end. What is to be tried again is held until the drain is over."""
    request, queue = taken.request, workspace.builds
    step = f"engine {request.encoder} of {request.service}"
    try:
        reporter().started(step)
        with disk_faults("the state folder", str(workspace.home.root), _REMEDY), tidied(workspace):
            require_room(workspace.home, "a build")
            live = fulfil(workspace, request, cancel).live
    except (BuildCancelled, Interrupted) as error:
        queue.settle(request, BuildState.WAITING, str(error), tried=False)  # somebody ended it
        ended = EndedBuild(request, BuildState.WAITING, str(error))
    except AGAIN as error:
        # What ran out of room was no try, also where a compiler only died of it.
        tried = not isinstance(error, DiskFull) and has_room(workspace.home)
        later(queue.settle, request, BuildState.WAITING, str(error), tried=tried)
        ended = EndedBuild(request, BuildState.WAITING, str(error))
    except ModalgateError as error:
        queue.settle(request, BuildState.FAILED, str(error))
        blocked = isinstance(error, Blocked)
        ended = EndedBuild(request, BuildState.FAILED, str(error), blocked=blocked)
    except BaseException as error:  # a fault of ours, said where people look, and not hidden
        queue.settle(request, BuildState.WAITING, f"unforeseen {type(error).__name__}: {error}")
        raise
    else:
        queue.settle(request, BuildState.DONE)
        ended = EndedBuild(request, BuildState.DONE, live=live)
    reporter().finished(step, ended.state.value)
    return ended
