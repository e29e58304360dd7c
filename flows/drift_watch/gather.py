"""The recorded windows of a service as one, and what of them cannot be used.

A window of another version than the live one is refused with both origins named: its vectors are
not comparable, even where their dimensions agree.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from infra.windows import Entry, WindowFolder
from validators.contracts.bundle import Bundle
from validators.contracts.digest import Digest, short
from validators.contracts.errors import ModalgateError, Refused
from validators.contracts.origin import VectorOrigin
from validators.contracts.verdict import Finding, Outcome
from validators.drift.joining import concatenate
from validators.drift.window import DriftWindow
from validators.drift.window_file import read_window
from validators.watch.ready import carried, only, samples_of
from validators.watch.state import Taken

GATE = "drift"
UNUSABLE = "window-unusable"
MAX_FILES = 256
"""Read in one go; what is beyond waits for the next."""

MAX_ROWS = 5000
"""Of one judged window; of more a fair sample is judged."""


@dataclass(slots=True)
class Gathered:
    """`parts` are recorded windows, cut to what was not judged yet; `fresh` were not at all.

    `damaged` lie where they lay: who uses windows up puts them aside.
    """

    parts: dict[Digest, DriftWindow] = field(default_factory=dict)
    fresh: list[Digest] = field(default_factory=list)
    refused: list[Digest] = field(default_factory=list)
    damaged: list[Entry] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def waiting(self) -> list[dict[str, int]]:
        return [samples_of(part) for part in self.parts.values()]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts.values())

    def joined(self, columns: Collection[str]) -> DriftWindow:
        """One window of these columns."""
        parts = [only(part, columns) for part in self.parts.values()]
        return concatenate([part for part in parts if samples_of(part)], maximum_rows=MAX_ROWS)

    def whole(self) -> DriftWindow | None:
        """One window of all that is fresh, whatever can be judged of it; None: nothing is."""
        parts = [self.parts[digest] for digest in self.fresh]
        return concatenate(parts, maximum_rows=MAX_ROWS) if parts else None

    def taken(self, columns: Collection[str], known: Collection[str]) -> list[Taken]:
        """What becomes of each window once these columns are judged.

        What the reference does not know can never be judged, and does not wait.
        """
        return [
            Taken(digest, tuple(sorted((set(samples_of(part)) & set(known)) - set(columns))))
            for digest, part in self.parts.items()
        ]


def gather(
    folder: WindowFolder,
    bundle: Bundle,
    taken: Collection[Taken],
    reference: DriftWindow,
    *,
    since_ms: int | None = None,
) -> Gathered:
    """The windows with anything left to judge, oldest first. Reads only.

    At most MAX_FILES that are new, and the latest MAX_FILES with columns that wait for more.
    """
    known = {item.window: item.waiting for item in taken}
    found = Gathered()
    entries = [e for e in folder.entries() if since_ms is None or e.recorded_ms >= since_ms]
    fresh = [item for item in entries if item.window not in known][:MAX_FILES]
    waiting_on = [item for item in entries if known.get(item.window)][-MAX_FILES:]
    for entry in (*waiting_on, *fresh):
        if entry.window in found.parts:
            continue  # the same window twice under two times: it counts once
        if entry.bundle != bundle.digest:
            found.refused.append(entry.window)
            found.findings.append(_refuse(folder, entry, bundle))
            continue
        try:
            window = read_window(folder.read(entry))
            _require_origins(window, reference)
        except Refused as error:
            found.damaged.append(entry)
            found.findings.append(_unusable(entry, error))
            continue
        except ModalgateError:
            continue  # gone meanwhile: another watch or retention was first
        waiting = known.get(entry.window)
        found.parts[entry.window] = window if waiting is None else carried(window, waiting)
        if waiting is None:
            found.fresh.append(entry.window)
    return found


def _require_origins(window: DriftWindow, reference: DriftWindow) -> None:
    """Raise Refused where vectors come from another encoder version than the reference's."""
    for modality, column in window.embeddings.items():
        there = reference.embeddings.get(modality)
        if there is not None and there.origin is not None and column.origin != there.origin:
            raise Refused(
                f"its {modality} vectors come from another engine or encoder version",
                where=_both(column.origin, there.origin),
            )


def _refuse(folder: WindowFolder, entry: Entry, bundle: Bundle) -> Finding:
    here = {
        item.contract.name: VectorOrigin(
            item.fingerprint, bundle.deployed_engine(item.contract.name).engine
        )
        for item in bundle.encoders
    }
    detail = f"bundle {short(entry.bundle)}"
    try:
        window = read_window(folder.read(entry))
        detail += f": {_origins({n: c.origin for n, c in window.embeddings.items()})}"
    except ModalgateError as error:
        detail += f": {error.what}"
    return Finding(
        GATE, "other-version", f"window {short(entry.window)}", Outcome.WARN, detail,
        f"bundle {short(bundle.digest)}: {_origins(here)}",
        "Nothing to do: windows of another version are never compared with this one's reference.",
    )  # fmt: skip


def _unusable(entry: Entry, error: Refused) -> Finding:
    where = f" ({error.where})" if error.where else ""
    return Finding(
        GATE, UNUSABLE, f"window {short(entry.window)}", Outcome.WARN,
        f"{error.what}{where}", "a readable window of the live version",
        "Look at the disk of the state folder if this comes again; the watch puts it aside.",
    )  # fmt: skip


def _origins(origins: Mapping[str, VectorOrigin | None]) -> str:
    named = [f"{name} {item.describe()}" for name, item in sorted(origins.items()) if item]
    return "; ".join(named) or "no vectors"


def _both(one: VectorOrigin | None, other: VectorOrigin | None) -> str:
    return " and ".join(item.describe() if item else "no origin" for item in (one, other))


def expired(gone: Collection[Taken]) -> list[Finding]:
    """What retention removed before there was enough of it to judge."""
    columns = sorted({name for item in gone for name in item.waiting})
    return [
        Finding(
            GATE,
            "samples-expired",
            name,
            Outcome.WARN,
            "too few before they were too old",
            "samples enough within the time that windows are kept",
            "Record a larger share: gates.drift.record.",
        )
        for name in columns
    ]
