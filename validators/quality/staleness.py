"""Suites in files against the contracts as they are now: what nobody followed up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from validators.contracts.digest import short
from validators.contracts.verdict import Finding, Outcome
from validators.quality.naming import GATE, wanted_by
from validators.quality.words import Expectation, Suite

MAX_DIFFERENCES = 16


def judge_files(files: Mapping[str, Suite], made: Mapping[str, Suite]) -> Iterator[Finding]:
    """WARN for each suite that another contract made, that none made, or that is not there.

    `files` are the suites of the folder, `made` those that the contracts make now.
    """
    for name, suite in sorted(files.items()):
        now = made.get(name)
        if not suite.facts:
            yield Finding(
                GATE, "suite-of-unknown-origin", name, Outcome.WARN, "no contract", "a contract",
                "Write it by modalgate quality init and edit that, to be told when it is stale.",
            )  # fmt: skip
        elif now is not None and now.origin != suite.origin:
            yield Finding(
                GATE, "stale-suite", name, Outcome.WARN, _told(changed_facts(suite, now)),
                f"contract {short(now.origin)}",
                "Write it anew by modalgate quality init --force, or edit it to fit.",
            )  # fmt: skip
    for name in sorted(made.keys() - files.keys()):
        yield Finding(
            GATE, "suite-not-in-folder", name, Outcome.WARN, "made from the contract", "a file",
            "Run modalgate quality init to write it beside the others.",
        )  # fmt: skip


def changed_facts(before: Suite, now: Suite) -> list[str]:
    """What the contract says otherwise than when the suite was made."""
    old, new = dict(before.facts), dict(now.facts)
    return [
        f"{name}: {old.get(name, 'nothing')} became {new.get(name, 'nothing')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def edits(suite: Suite, made: Suite) -> list[str]:
    """How a suite differs from the one that the contract makes now."""
    mine, theirs = _by_subject(suite), _by_subject(made)
    found = []
    for key in dict.fromkeys([*mine, *theirs]):
        ours, their = mine.get(key), theirs.get(key)
        if ours == their:
            continue
        found.append(f"{' '.join(key)}: {_said(ours)}, the contract says {_said(their)}")
    return found


def _by_subject(suite: Suite) -> dict[tuple[str, str], list[Expectation]]:
    found: dict[tuple[str, str], list[Expectation]] = {}
    for item in suite.expectations:
        found.setdefault((item.column, item.type.removeprefix("expect_")), []).append(item)
    return found


def _said(items: list[Expectation] | None) -> str:
    if not items:
        return "nothing"
    return "; ".join(
        wanted_by(item)
        + (f" in {item.mostly:g} of the rows" if item.mostly < 1 else "")
        + f" ({item.severity.value})"
        for item in items
    )


def _told(differences: list[str]) -> str:
    more = len(differences) - MAX_DIFFERENCES
    return "; ".join(differences[:MAX_DIFFERENCES]) + (f"; and {more} more" if more > 0 else "")
