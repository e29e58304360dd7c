"""Deploys, canaries, promotes or rolls back, and dies by SIGKILL at the N-th durable step.

Usage: doomed_caller.py FOLDER VERB N [before|after]
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import infra.local_target.gateway
import infra.local_target.target
from infra.local_target.admin import AdminClient
from tests.infra.local_target.places import Place
from tests.infra.local_target.verbs import VERBS


class Doom:
    def __init__(self, step: int, moment: str) -> None:
        self.left = step
        self.moment = moment

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def doomed(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left == 0 and self.moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = function(*arguments, **options)
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return doomed


def main() -> None:
    folder, verb, step, moment = sys.argv[1:]
    doom = Doom(int(step), moment)
    gateway, target = infra.local_target.gateway, infra.local_target.target
    gateway.write_atomically = doom.wrap(gateway.write_atomically)  # type: ignore[attr-defined]
    gateway.spawn_detached = doom.wrap(gateway.spawn_detached)  # type: ignore[attr-defined]
    gateway.send_signal = doom.wrap(gateway.send_signal)  # type: ignore[attr-defined]
    target.write_atomically = doom.wrap(target.write_atomically)  # type: ignore[attr-defined]
    for name in ("load", "unload", "set_traffic"):
        setattr(AdminClient, name, doom.wrap(getattr(AdminClient, name)))
    VERBS[verb](Place(Path(folder)))


if __name__ == "__main__":
    main()
