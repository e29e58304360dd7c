"""`ElasticEngine`: a loaded engine that takes any shape by policy, and can be replaced."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from services.engines.elastic.generations import Generation, Generations
from services.engines.elastic.plan import Choice, ElasticPolicy, ServingPlan
from services.engines.elastic.recorder import SharedRecorder
from services.engines.elastic.replacement import require_replacement
from services.engines.elastic.wishes import ShapeWishes, Wish
from services.engines.guard import bind_feeds, check_values
from services.engines.profiles.assign import Cut, Degrade, Serve, Sizes, Split
from services.engines.profiles.histogram import ShapeHistogram
from services.engines.tensors import Arrays
from validators.contracts.digest import Digest
from validators.contracts.engine import EngineManifest
from validators.contracts.errors import BadInput, TooLarge, Unsupported
from validators.contracts.origin import siblings_of
from validators.contracts.ports import RunningEngine, Tensors

MAX_HISTORY = 64

FileShape = Callable[[Digest, Sizes, Callable[[str], None]], None]
"""Engine key, rounded sizes, and whom to tell what became of it ("filed", "known", "dropped"); must
neither block nor raise."""


class OutsideProfiles(BadInput):
    """A shape that no profile covers, and that no allowed way brings into one."""


@dataclass(frozen=True, slots=True)
class Served:
    """What one call gave, and how.

    profiles       which profiles ran, by index; several where the batch was split
    padded_share   of the work that was run, how much was padding, 0 to 1
    way            "inside", "padded" (below every minimum), "split" or "cut"
    degraded       what was left out of the answer, or None
    engine         digest of the compiled bytes that ran
    """

    outputs: Arrays
    profiles: tuple[int, ...]
    padded_share: float
    way: str
    degraded: str | None
    engine: Digest


class ElasticEngine:
    """Implements the `RunningEngine` port. Calls and swaps may come from any threads at once.

    Owns the engine it is given, and every one that takes its place.
    """

    def __init__(
        self,
        engine: RunningEngine,
        policy: ElasticPolicy | None = None,
        *,
        file_shape: FileShape | None = None,
        told: Callable[[str], None] = lambda outcome: None,
    ) -> None:
        """`told` hears what became of each shape that was worth a request, or too much for one.

        Raises BadInput where the engine's profiles contradict its contract.
        """
        manifest, policy = engine.manifest, policy or ElasticPolicy()
        plan = ServingPlan(manifest, policy)
        self._policy = policy
        self._generations = Generations(Generation(engine, plan))
        self._history: tuple[EngineManifest, ...] = (manifest,)
        self._recorder = SharedRecorder(plan.dims)
        self._wishes = ShapeWishes(
            plan.largest, factor=policy.max_request_factor, most=policy.max_requests
        )
        self._file_shape = file_shape
        self._told = told
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()  # of wishes, counts and history
        self._swapping = threading.Lock()

    @property
    def manifest(self) -> EngineManifest:
        return self._generations.present.engine.manifest

    @property
    def siblings(self) -> frozenset[frozenset[Digest]]:
        """Pairs of engines that served here, whose vectors may mix."""
        return siblings_of(self._history)

    def run(self, feeds: Tensors) -> dict[str, npt.NDArray[Any]]:
        """As `serve`, where there is no way to say that an answer is degraded: nothing is cut."""
        return self._serve(feeds, may_cut=False).outputs

    def serve(self, feeds: Tensors) -> Served:
        """Run a request of any shape; its outputs are those of its own shape.

        Raises:
            OutsideProfiles: no profile covers it and the policy has no way; says what would fit.
            BadInput: inputs that contradict the contract.  TooLarge: more elements than allowed.
            Unavailable: the engine has been closed.
        """
        return self._serve(feeds, may_cut=True)

    def swap(self, new: RunningEngine) -> None:
        """Put a loaded, warmed engine in this one's place. Calls under way end on the old one.

        The old engine is closed when the last of them has left. On an error `new` is the caller's
        still.

        Raises:
            Refused: it is no replacement.  Unavailable: this engine has been closed.
        """
        with self._swapping:
            require_replacement(self.manifest, new.manifest)
            generation = Generation(new, ServingPlan(new.manifest, self._policy))
            with self._lock:
                before = self._history
                others = [item for item in before[1:] if item.engine != new.manifest.engine]
                self._history = (before[0], *others[-MAX_HISTORY:], new.manifest)
            try:
                self._generations.replace(by=generation)
            except BaseException:
                self._history = before
                raise
            with self._lock:
                self._wishes.renew()
                self._counts["swaps"] += 1

    def close(self) -> None:
        """Take no more calls; the engine is closed when the last has left."""
        self._generations.close()

    # -- what was seen --------------------------------------------------------------------------

    def recorded(self) -> ShapeHistogram | None:
        """Every shape since this was loaded; None for a contract of fixed shapes."""
        return self._recorder.everything()

    def take_window(self) -> ShapeHistogram | None:
        """Shapes since the last window was taken."""
        return self._recorder.take_window()

    def give_back(self, window: ShapeHistogram) -> None:
        self._recorder.give_back(window)

    def counts(self) -> dict[str, int]:
        """Swaps, and what became of shapes outside: filed, known, dropped, beyond, surplus."""
        with self._lock:
            return dict(self._counts)

    # -- one call -------------------------------------------------------------------------------

    def _serve(self, feeds: Tensors, *, may_cut: bool) -> Served:
        with self._generations.entered() as generation:
            manifest, plan = generation.engine.manifest, generation.plan
            sizes = bind_feeds(feeds, manifest.inputs)
            self._check_elements(feeds)
            check_values(feeds, manifest.inputs)
            self._recorder.add(sizes)
            choice = plan.choose(sizes, may_cut=may_cut)
            if not choice.covered:
                self._ask_for(manifest.key, sizes)
            return _run(generation, choice, feeds)

    def _check_elements(self, feeds: Tensors) -> None:
        elements = sum(array.size for array in feeds.values())
        if elements > self._policy.max_elements:
            raise TooLarge(
                f"the inputs hold {elements} numbers, over {self._policy.max_elements}",
                remedy="Send fewer at a time.",
            )

    def _ask_for(self, key: Digest, sizes: Mapping[str, int]) -> None:
        """Ask for an engine that covers these sizes, where that is worth it."""
        if self._file_shape is None:
            return
        if self._policy.bounded:
            self._settled((), Wish.BEYOND.value)
            return
        with self._lock:
            wish, rounded = self._wishes.consider(sizes)
        if wish in (Wish.BEYOND, Wish.SURPLUS):
            self._settled(rounded, wish.value)
        elif wish is Wish.NEW:
            self._file_shape(key, rounded, lambda outcome: self._settled(rounded, outcome))

    def _settled(self, sizes: Sizes, outcome: str) -> None:
        with self._lock:
            self._counts[outcome] += 1
            if outcome == "dropped":
                self._wishes.dropped(sizes)
        self._told(outcome)


def _run(generation: Generation, choice: Choice, feeds: Tensors) -> Served:
    plan, decision, degraded, way = generation.plan, choice.decision, None, "inside"
    if isinstance(decision, Degrade):
        raise _outside(generation, decision)
    if isinstance(decision, Cut):
        way, dims = "cut", dict(decision.dims)
        try:
            feeds, lost = plan.padder.shorten(feeds, dims)
        except Unsupported as error:
            raise OutsideProfiles(error.what, where=error.where, remedy=error.remedy) from error
        told = ", ".join(f"{name} to its first {size}" for name, size in dims.items())
        degraded = f"the input was too long and was cut: {told}" if lost else None
        decision = decision.rest
    elif isinstance(decision, Split):
        way = "split"
    elif not decision.covered:
        way = "padded"
    serves = [decision] if isinstance(decision, Serve) else [p.serve for p in decision.parts]
    outputs = plan.padder.run(decision, feeds, generation.engine.run)
    return Served(
        outputs=outputs,
        profiles=tuple(serve.profile for serve in serves),
        padded_share=choice.padded_share,
        way=way,
        degraded=degraded,
        engine=generation.engine.manifest.engine,
    )


def _outside(generation: Generation, decision: Degrade) -> OutsideProfiles:
    return OutsideProfiles(
        f"the inputs' shapes are outside every profile of this engine: {decision.reason}",
        where=generation.engine.manifest.spec.encoder,
        remedy=decision.remedy,
    )
