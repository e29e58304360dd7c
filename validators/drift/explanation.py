"""What moved, by how much and where: a drift verdict in plain sentences.

Rows are named by their number in the window, never by what they hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from validators.contracts.verdict import Finding, Outcome, Verdict
from validators.drift.blocks import Block, Estimate, differences, estimate_misfits
from validators.drift.columns import ABSENT, Bools, Rows
from validators.drift.dependence import find_dependence
from validators.drift.detectors import DEFAULT_DETECTORS, Detector
from validators.drift.gate import thinned
from validators.drift.joining import Siblings
from validators.drift.settings import DriftSettings, Kind
from validators.drift.subjects import Case, build_subjects
from validators.drift.window import FORMAT, DriftWindow

Floats = npt.NDArray[np.float64]
Quantiles = tuple[float, ...]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SHOWN = 3
MAX_ROWS_NAMED = 10


@dataclass(frozen=True, slots=True)
class Explanation:
    """One finding explained.

    `before` and `after` are the values at QUANTILES of what moved (of a scalar, or of the vectors'
    place along the direction that moved; empty for categories). `slices` are the lineage slices
    that moved most, with by how much; `rows` the rows of the window that show it most.
    """

    subject: str
    outcome: Outcome
    sentences: tuple[str, ...]
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    slices: tuple[tuple[str, float], ...] = ()
    rows: tuple[int, ...] = ()


def explain(
    verdict: Verdict,
    reference: DriftWindow,
    current: DriftWindow,
    settings: DriftSettings | None = None,
    *,
    siblings: Siblings = (),
    detectors: Sequence[Detector] = DEFAULT_DETECTORS,
) -> tuple[Explanation, ...]:
    """Each finding of `verdict` on these two windows, the worst first."""
    order = sorted(verdict.findings, key=lambda item: -item.outcome.severity)
    rules = settings or DriftSettings()
    if reference.format != FORMAT or not any(item.code == "drifted" for item in order):
        return tuple(_plain(item) for item in order)
    before, _ = thinned(reference, rules.maximum_samples)
    now, places = thinned(current, rules.maximum_samples)
    units = find_dependence(before, now).units
    case = Case(before, now, units, rules, detectors, siblings)
    blocks: dict[str, list[Block]] = {}
    for block in build_subjects(case).blocks:
        blocks.setdefault(block.subject, []).append(block)
    return tuple(
        _moved(item, case, found, places)
        if item.code == "drifted" and (found := _blocks_of(item.subject, blocks))
        else _plain(item)
        for item in order
    )


def _blocks_of(subject: str, blocks: Mapping[str, list[Block]]) -> list[Block]:
    """Those of "<feature>" or "<tag>=<word>/<feature>"."""
    names = [name for name in blocks if subject == name or subject.endswith("/" + name)]
    return blocks[max(names, key=len)] if names else []


def _plain(finding: Finding) -> Explanation:
    said = f"{finding.subject}: {finding.code}, measured {finding.measured}, limit {finding.limit}."
    return Explanation(finding.subject, finding.outcome, (said, finding.remedy))


@dataclass(frozen=True, slots=True)
class _View:
    """The block that moved most, on the pooled rows `kept` (all, or those of a slice).

    `inside` says which of them are of the current window, `scores` how much each is of what that
    has more of.
    """

    case: Case
    block: Block
    kept: Rows
    inside: Bools
    moved: Floats
    scores: Floats


def _moved(finding: Finding, case: Case, blocks: Sequence[Block], places: Rows) -> Explanation:
    view = _view(case, blocks, finding.subject.removesuffix(blocks[0].subject).removesuffix("/"))
    said, before, after = _say(finding.subject, view)
    slices = tuple(_slices(view))
    if slices:
        most = ", ".join(f"{name} ({amount:+.2f})" for name, amount in slices)
        said.append(f"It moved most, in units of its spread, in the slices {most}.")
    there = np.flatnonzero(view.inside & view.block.present)
    worst = there[np.argsort(-view.scores[there], kind="stable")][:MAX_ROWS_NAMED]
    rows = tuple(int(places[view.kept[row] - case.edge]) for row in worst)
    said += [f"Look at rows {', '.join(map(str, rows))} of the window first.", finding.remedy]
    return Explanation(finding.subject, finding.outcome, tuple(said), before, after, slices, rows)


def _view(case: Case, blocks: Sequence[Block], slice_name: str) -> _View:
    kept = np.arange(case.units.rows)
    inside = kept >= case.edge
    if slice_name:
        kept = np.flatnonzero(_in_slice(case, slice_name))
        blocks, inside = [block.take(kept) for block in blocks], inside[kept]
    block, moved = max(
        ((item, differences(item, inside[None, :].astype(np.float32))[0]) for item in blocks),
        key=lambda pair: _size(*pair),
    )
    return _View(case, block, kept, inside, moved, _along(block, moved))


def _size(block: Block, moved: Floats) -> float:
    """To choose the block of a subject by: pairs by their misfits, vectors by what moved most."""
    if block.kind is Kind.PAIRS:
        return float(block.form == "misfits")
    spread = block.features[block.present].std(axis=0).astype(np.float64)
    return float(np.sqrt(np.sum(moved**2))) / max(float(np.sqrt(np.sum(spread**2))), 1e-12)


def _along(block: Block, moved: Floats) -> Floats:
    """[n]: how much each row is of what the current window has more of."""
    if block.form == "misfits":
        return block.features[:, 0].astype(np.float64)
    if block.form == "steps":
        rising = float(np.cumsum(moved).sum()) < 0  # more mass above: values went up
        step = block.features.argmax(axis=1).astype(np.float64)
        return np.asarray(step if rising else -step)
    return np.asarray(block.features.astype(np.float64) @ moved)


def _say(name: str, view: _View) -> tuple[list[str], Quantiles, Quantiles]:
    """Sentences, and the quantiles before and after where there are any."""
    block, inside = view.block, view.inside
    if block.kind is Kind.PAIRS:
        return [_pairs(name, estimate_misfits(block, inside))], (), ()
    if block.kind is Kind.CATEGORY:
        return list(_categories(name, view)), (), ()
    if block.kind is Kind.ABSENCE:
        gone, absent = _absent(block, ~inside), _absent(block, inside)
        return [f"{name}: rows without it went from {gone:.1%} to {absent:.1%}."], (), ()
    values = view.scores
    if block.kind is Kind.SCALAR:
        windows = view.case.reference, view.case.current
        columns = [window.descriptors[block.subject].values for window in windows]
        values = np.concatenate(columns)[view.kept]
    before, after = (_quantiles(values[block.present & side]) for side in (~inside, inside))
    if block.kind is Kind.SCALAR:
        return [_scalar(name, before, after)], before, after
    return [_vectors(name, block, before, after)], before, after


def _quantiles(values: Floats) -> Quantiles:
    return tuple(float(value) for value in np.quantile(values, QUANTILES))


def _vectors(name: str, block: Block, before: Quantiles, after: Quantiles) -> str:
    return (
        f"{name}: its vectors moved along one direction of {block.features.shape[1]} features; the "
        f"median place along it went from {before[2]:.3g} to {after[2]:.3g}, where half of the "
        f"reference lies between {before[1]:.3g} and {before[3]:.3g}."
    )


def _scalar(name: str, before: Quantiles, after: Quantiles) -> str:
    way = "up" if after[2] > before[2] else "down" if after[2] < before[2] else "in spread"
    return (
        f"{name} went {way}: its median from {before[2]:.4g} to {after[2]:.4g}, its 5 % and 95 % "
        f"quantiles from {before[0]:.4g} and {before[4]:.4g} to {after[0]:.4g} and {after[4]:.4g}."
    )


def _pairs(name: str, share: Estimate) -> str:
    return (
        f"{name}: {share.value:.0%} of the pairs (95 % interval {share.low:.0%} to "
        f"{share.high:.0%}) no longer belong together, as if each had a stranger's partner."
    )


def _categories(name: str, view: _View) -> Iterator[str]:
    block, moved = view.block, view.moved
    now = block.features[view.inside & block.present].mean(axis=0)
    for place in np.argsort(-np.abs(moved), kind="stable")[:SHOWN]:
        word, share = block.words[place], float(now[place])
        yield f"{name}: {word} went from {share - moved[place]:.1%} to {share:.1%} of the rows."


def _absent(block: Block, side: Bools) -> float:
    return 1 - float(block.features[side, 0].mean()) if side.any() else 0.0


def _in_slice(case: Case, name: str) -> Bools:
    """[pooled rows]: those of "<tag>=<word>"."""
    tag, _, word = name.partition("=")
    found = []
    for window in (case.reference, case.current):
        column = window.tags[tag]
        code = column.vocabulary.index(word) if word in column.vocabulary else ABSENT - 1
        found.append(column.codes == code)
    return np.concatenate(found)


def _slices(view: _View) -> Iterator[tuple[str, float]]:
    """The slices in which the mean score moved most, in units of its spread."""
    case, present = view.case, view.block.present
    spread = float(view.scores[present].std())
    found = list[tuple[str, float]]()
    for tag in sorted({*case.reference.tags} & {*case.current.tags}) if spread else ():
        words = {*case.reference.tags[tag].vocabulary} & {*case.current.tags[tag].vocabulary}
        for word in sorted(words):
            rows = _in_slice(case, f"{tag}={word}")[view.kept] & present
            sides = rows & ~view.inside, rows & view.inside
            if min(int(side.sum()) for side in sides) >= case.settings.minimum_samples:
                gap = float(view.scores[sides[1]].mean() - view.scores[sides[0]].mean()) / spread
                found.append((f"{tag}={word}", round(gap, 3)))
    yield from sorted(found, key=lambda item: -abs(item[1]))[:SHOWN]
