"""Two versions from outside: spaces compared, wrong inputs named, an adapter where one is enough.

A release encodes its own catalogue again; the adapter is for vectors that are stored elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flows.interruption import told_to_end
from flows.workspace import Workspace
from services.compatibility.adapters.building import Bench, Side, VersionPair, build_adapter
from services.compatibility.adapters.fitting import fit_adapters
from services.compatibility.adapters.pairs import AdapterPairs
from services.compatibility.adapters.register import find_adapters, register_adapters
from services.compatibility.compare import EncoderVersion, Feeds, compare_encoders
from services.compatibility.counterfactuals import check_inputs
from services.compatibility.preprocessing import compare_inputs
from services.compatibility.views import KINDS, VIEWS, view_of
from services.preprocess import RawInput, make_preprocessor
from validators.compatibility.adapters import AdapterChoice, AdapterRecord, missing_pairs
from validators.compatibility.measured import (
    CompatibilityMeasurement,
    CompatibilityWord,
    Geometry,
)
from validators.compatibility.preprocessing import (
    input_metrics,
    judge_inputs,
    judge_tensors,
    judge_unexplained,
)
from validators.compatibility.spaces import GATE, judge_choice
from validators.compatibility.verdict import assess_compatibility
from validators.compatibility.words import CompatibilitySettings, word_of
from validators.contracts.digest import Digest, canonical_json
from validators.contracts.origin import VectorOrigin
from validators.contracts.verdict import Evidence, Finding, Outcome, Verdict, conclude

MAX_ITEMS = 512
"""Items that an adapter is fitted and measured on."""

ENCODED_ROWS = 1200
"""Views of items that each version encodes for it, at most."""

_CHANGED = (CompatibilityWord.ADAPTER, CompatibilityWord.REINDEX)


@dataclass(frozen=True, slots=True)
class OpenPair:
    """Two loaded versions with their fingerprints, and the raw items of their modality.

    `raws` begin with the items that `feeds` were made of; none where nothing of it is released.
    """

    old: EncoderVersion
    new: EncoderVersion
    old_fingerprint: Digest
    new_fingerprint: Digest
    raws: Sequence[RawInput] = ()

    @property
    def versions(self) -> tuple[Side, Side]:
        old, new = (
            Side(
                version.contract, VectorOrigin(fingerprint, version.engine.manifest.engine)
            )
            for version, fingerprint in (
                (self.old, self.old_fingerprint), (self.new, self.new_fingerprint),
            )
        )  # fmt: skip
        return old, new

    @property
    def has_views(self) -> bool:
        kinds = {version.contract.preprocess.kind for version in (self.old, self.new)}
        return bool(self.raws) and kinds <= KINDS and len(kinds) == 1


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """The verdict on a pair, the figures behind it, and the adapters that were registered.

    `measured` is None where a version did not survive.
    """

    verdict: Verdict
    measured: CompatibilityMeasurement | None = None
    adapters: tuple[AdapterRecord, ...] = ()


def judge_pair(
    workspace: Workspace,
    pair: OpenPair,
    feeds: Sequence[Feeds],
    settings: CompatibilitySettings,
) -> Verdict:
    """As `compare_pair`, the verdict alone."""
    return compare_pair(workspace, pair, feeds, settings).verdict


def compare_pair(
    workspace: Workspace,
    pair: OpenPair,
    feeds: Sequence[Feeds],
    settings: CompatibilitySettings,
) -> JudgedPair:
    """The gate's verdict on two versions by their answers; what was registered is in its evidence.

    Raises:
        BadInput: inputs that do not fit.  Otherwise as fitting and building an adapter does.
    """
    views = _feeds(workspace, pair, len(feeds), 1) if pair.has_views else ()
    measured = compare_encoders(pair.old, pair.new, feeds, views=views)
    words = [word_of(geometry, settings) for geometry in measured.geometries]
    if all(word is CompatibilityWord.COMPATIBLE for word in words):
        return JudgedPair(assess_compatibility(measured, settings), measured)
    check = check_inputs(pair.old, pair.new, feeds)
    differences = compare_inputs(pair.old.contract, pair.new.contract, feeds)
    findings = [
        *judge_inputs(check),
        *judge_unexplained(check, differences),
        *judge_tensors(check.encoder, differences),
    ]
    records: tuple[AdapterRecord, ...] = ()
    if all(item.outcome <= Outcome.WARN for item in findings):
        records, refused = offer_adapters(workspace, pair, measured, settings)
        findings += refused
    verdict = assess_compatibility(measured, replace(settings, adapters=records))
    joined = conclude(
        GATE,
        [*verdict.findings, *findings],
        examined=measured.items,
        metrics={**dict(verdict.metrics), **input_metrics(check)},
    )
    evidence = _evidence(workspace, check.encoder, records)
    return JudgedPair(joined.with_evidence(*evidence), measured, records)


def offer_adapters(
    workspace: Workspace,
    pair: OpenPair,
    measured: CompatibilityMeasurement,
    settings: CompatibilitySettings,
) -> tuple[tuple[AdapterRecord, ...], list[Finding]]:
    """The registered adapters of every embedding that changed its space, and why others have none.

    What was registered for exactly these engines before is taken as it is.
    """
    wanted = [item for item in measured.geometries if word_of(item, settings) in _CHANGED]
    if not wanted:
        return (), []
    old, new = pair.versions
    known = find_adapters(
        workspace.store, workspace.verifier, old.origin.encoder, new.origin.encoder
    )
    found = [item for item in known if (item.old, item.new) == (old.origin, new.origin)]
    lacking = [item for item in wanted if item.output not in {known.output for known in found}]
    if not lacking:
        return tuple(found), []
    made, findings = _make(workspace, pair, lacking, settings)
    if made:
        register_adapters(workspace.store, workspace.signer, [*found, *made])
    return (*found, *made), findings


def _make(
    workspace: Workspace,
    pair: OpenPair,
    wanted: Sequence[Geometry],
    settings: CompatibilitySettings,
) -> tuple[list[AdapterRecord], list[Finding]]:
    count = min(len(pair.raws), MAX_ITEMS)
    name = pair.old.contract.name
    if lacking := missing_pairs(count):
        choice = AdapterChoice(None, "", lacking)
        return [], [
            finding
            for item in wanted
            for finding in judge_choice(f"{name}.{item.output}", choice, count, settings)
        ]
    made, findings = list[AdapterRecord](), list[Finding]()
    bench = Bench(
        workspace.workshop,
        workspace.store,
        workspace.verifier,
        workspace.home.folder("engines", "work"),
        pair.new.engine.manifest.spec.backend,
    )
    encoded = _encode(workspace, pair, [item.output for item in wanted], count)
    old, new = pair.versions
    for output, pairs in encoded.items():
        fitted = fit_adapters(
            pairs, bench.workdir, subject=name, kept_share=settings.found_share, cancel=told_to_end
        )
        if fitted.choice.chosen is None:
            findings += judge_choice(f"{name}.{output}", fitted.choice, count, settings)
            continue
        versions = VersionPair(old, new, output)
        made.append(build_adapter(bench, versions, fitted, pairs, cancel=told_to_end))
    return made, findings


def _encode(
    workspace: Workspace, pair: OpenPair, outputs: Sequence[str], count: int
) -> dict[str, AdapterPairs]:
    """Every view of every item through both versions, by output."""
    views = max(2, min(VIEWS, ENCODED_ROWS // count)) if pair.has_views else 1
    rows: dict[str, tuple[list[object], list[object]]] = {name: ([], []) for name in outputs}
    for view in range(views):
        for old_feed, new_feed in _feeds(workspace, pair, count, view):
            before, after = pair.old.engine.run(old_feed), pair.new.engine.run(new_feed)
            for name, (olds, news) in rows.items():
                olds.append(before[name][0])
                news.append(after[name][0])
    item, view_of_row = np.tile(np.arange(count), views), np.repeat(np.arange(views), count)
    return {
        name: AdapterPairs(np.array(olds), np.array(news), item, view_of_row)
        for name, (olds, news) in rows.items()
    }


def _feeds(workspace: Workspace, pair: OpenPair, count: int, view: int) -> Iterator[Feeds]:
    """One view of the first items through each version's own preprocessing."""
    kind = pair.new.contract.preprocess.kind
    old, new = (
        make_preprocessor(version.contract.preprocess, workspace.store.get)
        for version in (pair.old, pair.new)
    )
    for raw in pair.raws[:count]:
        seen = view_of(raw, kind, view) if view else raw
        yield old(seen), new(seen)


def _evidence(
    workspace: Workspace, encoder: str, records: Sequence[AdapterRecord]
) -> tuple[Evidence, ...]:
    if not records:
        return ()
    digest = workspace.store.put(canonical_json(list(records)))
    return (Evidence(f"adapters-{encoder}.json", digest),)
