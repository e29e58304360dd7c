"""The build processes that a process has started, as a test sees them."""

from __future__ import annotations

import psutil


def builders(parent: int | None = None) -> list[psutil.Process]:
    """Live children of a process (this one by default) that run a builder's task."""
    found = []
    for child in psutil.Process(parent).children():
        try:
            command = child.cmdline()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue  # ended, and not yet waited for
        if "services.children.child" in command:
            found.append(child)
    return found
