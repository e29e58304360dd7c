"""From an audit's finds to a verdict.

A strong find is a FAIL that names the sample and the place; identity numbers, payment numbers and
a playable voice cannot be waived. A weak find (a shape that might be a name) is a WARN for a person
to look at. What no detector could look into is INCONCLUSIVE, and so is an empty data set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from validators.contracts.verdict import Finding, Outcome, Verdict, conclude

GATE = "privacy"
UNWAIVABLE = frozenset({"id-number", "payment-number", "voice"})


@dataclass(frozen=True, slots=True)
class PrivacyFind:
    """Something that should not be there. Never the thing itself.

    `place` is a pixel box (left, top, right, bottom) of a picture, a character span (start, end)
    of a text, or empty for the object as a whole. `kind`: face, name, phone, e-mail, id-number,
    payment-number, network-address, voice, metadata.
    """

    sample: str
    modality: str  # "tags" and "id" for the sample's own
    kind: str
    place: tuple[int, ...]
    strong: bool = True

    @property
    def subject(self) -> str:
        where = "-".join(str(number) for number in self.place)
        return f"{self.sample}@{self.modality}" + (f":{where}" if where else "")


@dataclass(frozen=True, slots=True)
class AuditCounts:
    """How much was looked at. `unexamined` are (modality and reason, how many), sorted."""

    samples: int
    examined: tuple[tuple[str, int], ...]  # by modality
    unexamined: tuple[tuple[str, int], ...] = ()


def assess_privacy(finds: Iterable[PrivacyFind], counts: AuditCounts) -> Verdict:
    """Judge what an audit found in the data set that is to be released."""
    listed = tuple(finds)
    findings = [_visible(find) for find in listed]
    findings += [_unexamined(name, count) for name, count in counts.unexamined]
    looked_at = sum(count for _, count in counts.examined)
    metrics = {"samples": float(counts.samples), "media_examined": float(looked_at)}
    metrics |= {"finds_strong": float(sum(find.strong for find in listed))}
    metrics |= {"finds_weak": float(sum(not find.strong for find in listed))}
    examined = looked_at if counts.samples else 0
    return conclude(GATE, findings, examined=examined, metrics=metrics)


def _visible(find: PrivacyFind) -> Finding:
    return Finding(
        GATE,
        f"{find.kind}-visible",
        find.subject,
        Outcome.FAIL if find.strong else Outcome.WARN,
        f"{find.kind} in the {find.modality} of {find.sample}",
        "none",
        f"Redact or remove the sample: {_where(find)}."
        if find.strong
        else f"Look at the sample by eye: {_where(find)}.",
        waivable=find.kind not in UNWAIVABLE,
    )


def _where(find: PrivacyFind) -> str:
    if len(find.place) == 4:
        left, top, right, bottom = find.place
        return f"pixels {left},{top} to {right},{bottom}"
    if len(find.place) == 2:
        return f"characters {find.place[0]} to {find.place[1]}"
    return "the object as a whole"


def _unexamined(name: str, count: int) -> Finding:
    return Finding(
        GATE, "not-examined", name, Outcome.INCONCLUSIVE, float(count), 0.0,
        "Leave these out of the data set, or have a person examine them and waive this finding.",
    )  # fmt: skip
