"""Seeded data for the drift benchmarks, as it is and shifted by a grade."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

from validators.contracts.digest import digest_bytes
from validators.contracts.origin import VectorOrigin
from validators.drift.columns import Categories, Embedded, Scalars
from validators.drift.window import DriftWindow

Array = npt.NDArray[Any]
Draw = Callable[[np.random.Generator, int], Array]

SIZE, MODES = 64, 8
ORIGIN = VectorOrigin(digest_bytes(b"benchmark"), digest_bytes(b"benchmark"))

_FIXED = np.random.default_rng(5)
_SPREAD = np.arange(1, SIZE + 1) ** -0.5
_MODES = _FIXED.normal(size=(MODES, SIZE)) * _SPREAD
_TURN = np.linalg.qr(_FIXED.normal(size=(SIZE, SIZE)))[0]
_ASIDE = _FIXED.normal(size=SIZE) / 8
_INTRUDER = np.r_[0, 1.5, 0, 0, 1.0, np.zeros(SIZE - 5)]


@dataclass(frozen=True, slots=True)
class Mixture:
    """Vectors on the unit sphere around eight modes, with a decaying spectrum.

    Each field is one kind of shift; `tails` draws heavy tails instead of normal ones.
    """

    along: float = 0.0  # mean, along a direction of its own
    scale: float = 1.0
    turned: float = 0.0  # radians, in the planes of coordinates 0 and 5, 2 and 9
    intruders: float = 0.0  # share
    dropped: float = 0.0  # share of one mode that is gone
    tails: bool = False

    def __call__(self, generator: np.random.Generator, rows: int) -> Array:
        weights = np.ones(MODES)
        weights[3] -= self.dropped
        mode = generator.choice(MODES, size=rows, p=weights / weights.sum())
        noise = generator.normal(size=(rows, SIZE))
        if self.tails:
            noise /= np.sqrt(generator.chisquare(3, size=(rows, 1)) / 3)
        noise *= _SPREAD * self.scale
        for one, other in ((0, 5), (2, 9)):
            cos, sin = np.cos(self.turned), np.sin(self.turned)
            noise[:, [one, other]] = noise[:, [one, other]] @ np.array([[cos, sin], [-sin, cos]])
        drawn = _MODES[mode] + noise + self.along * _ASIDE
        strange = generator.random(rows) < self.intruders
        drawn[strange] = noise[strange] * 0.7 + _INTRUDER
        turned = drawn @ _TURN
        return np.asarray(turned / np.linalg.norm(turned, axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class Digits:
    """Real pictures of handwritten digits (8 by 8 pixels, in scikit-learn), as vectors."""

    eights: float = 1.0  # how often the digit 8 comes, relative to the others
    threes: float = 1.0
    dim: float = 1.0  # brightness

    def __call__(self, generator: np.random.Generator, rows: int) -> Array:
        images, labels = _digits()
        weights = np.ones(10)
        weights[8], weights[3] = self.eights, self.threes
        chosen = generator.choice(len(images), size=rows, p=_normed(weights[labels]))
        return np.asarray(images[chosen] * self.dim + generator.normal(0, 0.05, size=(rows, SIZE)))


def _digits() -> tuple[Array, Array]:
    if not _LOADED:
        found = load_digits()
        _LOADED.extend([found.data / 16, found.target])
    return _LOADED[0], _LOADED[1]


_LOADED: list[Array] = []


def _normed(weights: Array) -> Array:
    return np.asarray(weights / weights.sum())


EMBEDDING_SHIFTS: Mapping[str, tuple[Draw, Mapping[str, Draw]]] = {
    "mixture": (
        Mixture(),
        {
            "mean 0.2": Mixture(along=0.2), "mean 0.3": Mixture(along=0.3),
            "scale 1.15": Mixture(scale=1.15), "scale 1.3": Mixture(scale=1.3),
            "rotation 30°": Mixture(turned=np.pi / 6), "rotation 60°": Mixture(turned=np.pi / 3),
            "contamination 5 %": Mixture(intruders=0.05),
            "contamination 10 %": Mixture(intruders=0.10),
            "contamination 20 %": Mixture(intruders=0.20),
            "contamination 50 %": Mixture(intruders=0.50),
            "half a mode gone": Mixture(dropped=0.5), "a mode gone": Mixture(dropped=1.0),
        },
    ),
    "digits": (
        Digits(),
        {
            "eights 3 times": Digits(eights=3), "no threes": Digits(threes=0),
            "5 % dimmer": Digits(dim=0.95),
        },
    ),
    "heavy tails (nothing was tuned on it)": (
        Mixture(tails=True),
        {
            "mean 0.3": Mixture(along=0.3, tails=True),
            "scale 1.3": Mixture(scale=1.3, tails=True),
            "rotation 60°": Mixture(turned=np.pi / 3, tails=True),
            "contamination 20 %": Mixture(intruders=0.20, tails=True),
            "a mode gone": Mixture(dropped=1.0, tails=True),
        },
    ),
}  # fmt: skip
"""By data set: how it is drawn unchanged, and shifted."""


def embedding_window(draw: Draw, generator: np.random.Generator, rows: int) -> DriftWindow:
    vectors = draw(generator, rows).astype(np.float32)
    return DriftWindow(rows, embeddings={"image": Embedded(vectors, np.arange(rows), "s", ORIGIN)})


COLUMNS = 8


@dataclass(frozen=True, slots=True)
class Table:
    """Eight correlated scalars and a category; the first scalar or the category is shifted."""

    mean: float = 0.0
    scale: float = 1.0
    mix: float = 0.0  # share that moved from the first category to the last
    lost: float = 0.0  # share of the first scalar that is missing

    def __call__(self, generator: np.random.Generator, rows: int) -> DriftWindow:
        values = generator.normal(size=(rows, 1)) * 0.7 + generator.normal(size=(rows, COLUMNS))
        values[:, 0] = values[:, 0] * self.scale + self.mean * 1.22  # in units of its spread
        values[generator.random(rows) < self.lost, 0] = np.nan
        shares = np.array([0.4 - self.mix, 0.3, 0.2, 0.1 + self.mix])
        words = generator.choice(["a", "b", "c", "d"], size=rows, p=shares)
        scalars = {f"c{place}": Scalars.of(values[:, place]) for place in range(COLUMNS)}
        return DriftWindow(rows, scalars, {"label": Categories.of(words.tolist())})


TABLE_SHIFTS: Mapping[str, Table] = {
    "mean 0.3": Table(mean=0.3), "mean 0.5": Table(mean=0.5), "mean 1": Table(mean=1.0),
    "scale 1.5": Table(scale=1.5), "scale 2": Table(scale=2.0),
    "mix 10 %": Table(mix=0.1), "mix 20 %": Table(mix=0.2),
    "missing 10 %": Table(lost=0.1), "missing 20 %": Table(lost=0.2),
}  # fmt: skip

HIDDEN, PAIR_SIZE = 24, 96
_IMAGE, _TEXT = np.random.default_rng(3).normal(size=(2, HIDDEN, PAIR_SIZE))


def pair_window(
    generator: np.random.Generator, rows: int, swapped: float, *, shared: bool, noise: float = 4.0
) -> DriftWindow:
    """Image and text of one hidden cause; of a share of rows the texts go round among them.

    `shared`: in one space, matched pairs having a cosine of about 0.25.
    """
    hidden = generator.normal(size=(rows, HIDDEN)) * np.arange(1, HIDDEN + 1) ** -0.5
    image, text = (
        hidden @ weights + generator.normal(size=(rows, PAIR_SIZE)) * noise
        for weights in (_IMAGE, _IMAGE if shared else _TEXT)
    )
    count = round(swapped * rows)
    text[:count] = np.roll(text[:count], 1, axis=0)
    spaces = "common", "common" if shared else "another"
    return DriftWindow(
        rows,
        embeddings={
            name: Embedded(vectors.astype(np.float32), np.arange(rows), space, ORIGIN)
            for name, vectors, space in zip(("image", "text"), (image, text), spaces, strict=True)
        },
    )


def null_window(generator: np.random.Generator, rows: int) -> DriftWindow:
    """Everything at once: scalars, a category, two modalities in pairs, two lineage tags."""
    table = Table(lost=0.05)(generator, rows)
    pairs = pair_window(generator, rows, 0.0, shared=False)
    tags = {
        "sensor": Categories.of(generator.choice(["left", "right"], size=rows).tolist()),
        "source": Categories.of(generator.choice(["web", "studio"], size=rows).tolist()),
    }
    return DriftWindow(rows, table.descriptors, table.categories, pairs.embeddings, tags)
