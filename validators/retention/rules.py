"""Which references may go. Pure: what holds them and since when they are there come in.

An engine is held by what names its key: a deployed revision, a registered version or adapter, the
record of a release. Only what nothing holds may go, and only once its time of grace is over, so
that a release that has built an engine and not yet registered it loses nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from validators.contracts.digest import Digest


class Use(enum.Enum):
    """What an engine is there for, from the strongest on."""

    LIVE = "live"
    CANARY = "canary"
    ROLLBACK = "rollback"
    REGISTERED = "registered"
    RELEASED = "released"  # the record of a finished release names it
    NONE = "none"


_STRENGTH = {use: place for place, use in enumerate(Use)}


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that names engines by key. `name` is for people: "shop 3", "revision 4f…"."""

    name: str
    use: Use
    keys: frozenset[Digest]


@dataclass(frozen=True, slots=True)
class Pruning:
    """What to remove now, what waits for the end of its grace, and since when that is known."""

    remove: tuple[str, ...]
    waiting: tuple[str, ...]
    since_ms: Mapping[str, int]


def use_of(key: Digest, holders: Iterable[Holder]) -> tuple[Use, tuple[str, ...]]:
    """An engine's strongest use, and everything that holds it, the strongest first."""
    found = [holder for holder in holders if key in holder.keys and holder.use is not Use.NONE]
    found.sort(key=lambda holder: (_STRENGTH[holder.use], holder.name))
    return (found[0].use if found else Use.NONE), tuple(holder.name for holder in found)


def plan_pruning(
    references: Mapping[str, Digest],
    holders: Collection[Holder],
    *,
    since_ms: Mapping[str, int],
    now_ms: int,
    grace_ms: int,
) -> Pruning:
    """The references that may go.

    Args:
        references: names of the store, each with the key of the engine it is about.
        since_ms: wall time since when each is there, or was first seen held by nothing; one that
            is missing is seen for the first time now.
    """
    held = {key for holder in holders if holder.use is not Use.NONE for key in holder.keys}
    loose = sorted(name for name, key in references.items() if key not in held)
    since = {name: since_ms.get(name, now_ms) for name in loose}
    gone = tuple(name for name in loose if now_ms - since[name] >= grace_ms)
    waiting = tuple(name for name in loose if name not in set(gone))
    return Pruning(gone, waiting, {name: since[name] for name in waiting})
