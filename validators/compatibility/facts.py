"""What two versions' models themselves are, whatever their contracts say; and what differs.

Everything here is read from the graph, the module or the tokenizer file without running it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from validators.compatibility.alignment import align
from validators.compatibility.measured import StaticDifference

EPSILON_TOLERANCE = 1e-7
"""Two normalisations whose epsilons are further apart than this are different ones."""

LEAST_HALF = 2.0**-24
"""The least positive half, 6e-8: a smaller epsilon may be nothing where a half holds it."""

EPSILON_RATIO = 10.0
"""Epsilons of which one is below LEAST_HALF are different ones from this factor on."""

MAX_NAMED = 5
"""Tokens that are named one by one; a public vocabulary holds nothing of anybody."""

MAX_TOKEN = 24

MAX_LISTED = 8
"""Differences of one kind that are listed one by one; the rest is counted."""


@dataclass(frozen=True, slots=True)
class NormFact:
    """One normalisation: `name` in its graph, and the constant that keeps its root from zero."""

    name: str
    kind: str  # "LayerNorm", "RMSNorm", "BatchNorm", "GroupNorm", "InstanceNorm"
    epsilon: float


@dataclass(frozen=True, slots=True)
class OutputFact:
    """How an embedding is made: `pooling` is "mean", "masked mean", "cls", "max" or "unknown"."""

    name: str
    pooling: str
    normalised: bool  # the graph ends in a division by the Euclidean norm


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model file. `weights` are shapes by name; `types` count elements by type."""

    opset: int
    parameters: int
    types: tuple[tuple[str, int], ...]
    quantised: tuple[tuple[str, int], ...]  # operators of quantisation and how many
    weights: tuple[tuple[str, tuple[int, ...]], ...]
    norms: tuple[NormFact, ...]
    outputs: tuple[OutputFact, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    """A tokenizers file. `vocabulary` is a token's id by token; the rest are settings as text."""

    kind: str
    vocabulary: tuple[tuple[str, int], ...]
    special: tuple[tuple[str, int], ...]
    settings: tuple[tuple[str, str], ...]  # "lowercase", "normalizer", "truncation", ...


def compare_models(old: ModelFacts, new: ModelFacts) -> tuple[StaticDifference, ...]:
    """Every difference that the models show, by a plain name."""
    return tuple(_model_differences(old, new))


def is_epsilon(difference: StaticDifference) -> bool:
    """Whether it is about the epsilon of a normalisation."""
    return difference.what.startswith("epsilon.")


def compare_tokenizers(old: TokenizerFacts, new: TokenizerFacts) -> tuple[StaticDifference, ...]:
    """Vocabulary and settings; the ids decide what an embedding table is asked for."""
    return tuple(_tokenizer_differences(old, new))


def _model_differences(old: ModelFacts, new: ModelFacts) -> Iterator[StaticDifference]:
    yield from _changed("opset", f"{old.opset}", f"{new.opset}")
    yield from _changed("parameters", f"{old.parameters}", f"{new.parameters}")
    yield from _changed("weights.types", _listed(old.types), _listed(new.types))
    yield from _changed("quantisation", _listed(old.quantised), _listed(new.quantised))
    yield from _shapes(dict(old.weights), dict(new.weights))
    yield from _epsilons(old.norms, new.norms)
    before, after = ({item.name: item for item in side.outputs} for side in (old, new))
    for name in sorted(before.keys() & after.keys()):
        yield from _changed(f"pooling.{name}", before[name].pooling, after[name].pooling)
        yield from _changed(
            f"normalisation.{name}", _norm_text(before[name]), _norm_text(after[name])
        )


def _epsilons(old: tuple[NormFact, ...], new: tuple[NormFact, ...]) -> Iterator[StaticDifference]:
    """Of aligned normalisations; a stack that changes throughout is one difference, counted."""
    pairs = align([(n.name, n.kind) for n in old], [(n.name, n.kind) for n in new])
    yield from _changed("norms", _kinds(old), _kinds(new))
    groups: dict[tuple[str, float, float], list[str]] = {}
    for first, second in pairs:
        before, after = old[first], new[second]
        if _epsilons_differ(before.epsilon, after.epsilon):
            key = (after.kind, before.epsilon, after.epsilon)
            groups.setdefault(key, []).append(after.name)
    for (kind, before_eps, after_eps), names in groups.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        if min(before_eps, after_eps) < LEAST_HALF:
            less = "old" if before_eps < after_eps else "new"
            more += f"; the {less} one is below the least half, {LEAST_HALF:.1g}"
        yield StaticDifference(
            f"epsilon.{names[0]}", f"{before_eps:g} in {kind}", f"{after_eps:g}{more}"
        )


def _epsilons_differ(old: float, new: float) -> bool:
    """By more than the tolerance, or by a factor where a half would lose the smaller one."""
    less, more = sorted((old, new))
    lost = less < LEAST_HALF and more >= EPSILON_RATIO * less and more > 0
    return lost or more - less > EPSILON_TOLERANCE


def _shapes(
    old: dict[str, tuple[int, ...]], new: dict[str, tuple[int, ...]]
) -> Iterator[StaticDifference]:
    changed = [name for name in old.keys() & new.keys() if old[name] != new[name]]
    for name in sorted(changed)[:MAX_LISTED]:
        yield StaticDifference(f"weights.{name}", f"{list(old[name])}", f"{list(new[name])}")
    if len(changed) > MAX_LISTED:
        yield StaticDifference("weights.shapes", "as they were", f"{len(changed)} changed")
    lost, added = len(old.keys() - new.keys()), len(new.keys() - old.keys())
    if lost or added:
        yield StaticDifference("weights.names", f"{len(old)}", f"{lost} gone, {added} added")


def _tokenizer_differences(old: TokenizerFacts, new: TokenizerFacts) -> Iterator[StaticDifference]:
    yield from _changed("tokenizer.kind", old.kind, new.kind)
    before, after = dict(old.vocabulary), dict(new.vocabulary)
    yield from _changed("tokenizer.vocabulary", f"{len(before)} tokens", f"{len(after)} tokens")
    counted = {
        "added": [token for token in after if token not in before],
        "removed": [token for token in before if token not in after],
        "moved": [token for token, place in before.items() if after.get(token, place) != place],
    }
    if any(counted.values()):
        text = ", ".join(f"{len(found)} {what}{_named(found)}" for what, found in counted.items())
        yield StaticDifference("tokenizer.tokens", "as they were", text)
    yield from _joined("tokenizer.special", old.special, new.special)
    yield from _joined("tokenizer", old.settings, new.settings)


def _named(tokens: Sequence[str]) -> str:
    """The first few in brackets, each cut and escaped: a token may be any text."""
    if not tokens:
        return ""
    more = ", ..." if len(tokens) > MAX_NAMED else ""
    return f" ({', '.join(ascii(token[:MAX_TOKEN]) for token in tokens[:MAX_NAMED])}{more})"


def _joined(
    what: str, old: Iterable[tuple[str, object]], new: Iterable[tuple[str, object]]
) -> Iterator[StaticDifference]:
    before, after = dict(old), dict(new)
    for name in sorted(before.keys() | after.keys()):
        yield from _changed(
            f"{what}.{name}", f"{before.get(name, 'absent')}", f"{after.get(name, 'absent')}"
        )


def _changed(what: str, old: str, new: str) -> Iterator[StaticDifference]:
    if old != new:
        yield StaticDifference(what, old, new)


def _listed(counts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts) or "none"


def _kinds(norms: tuple[NormFact, ...]) -> str:
    counts: dict[str, int] = {}
    for norm in norms:
        counts[norm.kind] = counts.get(norm.kind, 0) + 1
    return _listed(sorted(counts.items()))


def _norm_text(output: OutputFact) -> str:
    return "unit length" if output.normalised else "none in the graph"
