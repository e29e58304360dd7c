from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from services.fusion.adapters import load_adapter, to_unit
from services.fusion.training import MINIMUM_PAIRS, Pairs, measure_recall, resolve, train_adapter
from validators.contracts.errors import BadInput, Unsupported
from validators.contracts.pipeline import AdapterEntry

AUTO = AdapterEntry("auto", "features", "common", (("scores", "logits"), ("top", 2)))


def pairs(count: int, *, held_out: float = 0.3, noise: float = 0.1) -> Pairs:
    generator = np.random.default_rng(0)
    features = generator.normal(size=(count, 20))
    targets = to_unit(features @ generator.normal(size=(20, 8)))
    targets = to_unit(targets + noise * generator.normal(size=targets.shape))
    return Pairs(
        outputs={"features": features, "logits": 9.0 * np.eye(count)[:, : max(count // 2, 2)]},
        targets=targets,
        captions=[f"picture {index}" for index in range(count)],
        held_out=np.arange(count) < held_out * count,
    )


def test_enough_pairs_teach_a_map_that_is_measured_on_what_it_never_saw() -> None:
    trained = train_adapter(AUTO, pairs(300))
    assert (trained.kind, trained.entry.output) == ("ridge", "features")
    assert trained.recall.queries == trained.recall.catalogue == 90
    assert trained.metrics["recall"] > 0.9
    assert trained.metrics["chance"] == pytest.approx(10 / 90)


def test_a_map_learns_nothing_from_pairs_that_do_not_belong_together() -> None:
    shuffled = pairs(300)
    shuffled = dataclasses.replace(shuffled, targets=np.roll(shuffled.targets, 7, axis=0))
    trained = train_adapter(AUTO, shuffled)
    assert trained.recall.low <= 2 * trained.recall.chance


def test_held_out_pairs_do_not_change_the_map() -> None:
    whole = pairs(300)
    spoilt = whole.targets.copy()
    spoilt[whole.held_out] = 1.0
    changed = train_adapter(AUTO, dataclasses.replace(whole, targets=spoilt))
    assert changed.data == train_adapter(AUTO, whole).data


def test_few_pairs_fall_back_on_class_names() -> None:
    few = pairs(24)
    trained = train_adapter(AUTO, few, lambda: few.targets[:12])
    assert (trained.kind, trained.entry.output) == ("conse", "logits")
    assert trained.recall.catalogue == 24
    assert trained.recall.k == 3
    vectors = load_adapter(trained.entry, trained.data)(few.outputs["logits"])
    assert (vectors[:12] @ few.targets[:12].T).argmax(1).tolist() == list(range(12))


def test_class_vectors_are_not_asked_for_where_a_map_is_learned() -> None:
    def refuse() -> np.ndarray:
        raise AssertionError

    assert train_adapter(AUTO, pairs(300), refuse).kind == "ridge"


def test_identity_has_no_file_and_is_measured_all_the_same() -> None:
    whole = pairs(40, noise=0.0)
    same = dataclasses.replace(whole, outputs={"features": whole.targets})
    trained = train_adapter(AdapterEntry("identity", "features", "common"), same)
    assert trained.data is None
    assert trained.recall.share == 1.0


@pytest.mark.parametrize(
    ("training_pairs", "kind"), [(MINIMUM_PAIRS, "ridge"), (MINIMUM_PAIRS - 1, "conse")]
)
def test_the_bound_between_learning_and_names_is_sharp(training_pairs: int, kind: str) -> None:
    assert resolve(AUTO, training_pairs).kind == kind


def test_equal_captions_are_equally_right() -> None:
    items = np.eye(4)
    swapped = items[[1, 0, 2, 3]]
    assert measure_recall(swapped, items, ["a", "a", "b", "c"]).hits == 4 - 0
    assert measure_recall(swapped, items, ["a", "d", "b", "c"]).hits == 2


@pytest.mark.parametrize(
    ("entry", "classes", "error"),
    [
        (AdapterEntry("auto", "features", "common"), True, BadInput),
        (AUTO, False, BadInput),
        (AdapterEntry("ridge", "missing", "common"), True, BadInput),
        (AdapterEntry("forest", "features", "common"), True, Unsupported),
    ],
    ids=["no scores", "no class vectors", "no such output", "unknown kind"],
)
def test_what_cannot_be_trained_says_why(
    entry: AdapterEntry, classes: bool, error: type[Exception]
) -> None:
    with pytest.raises(error):
        train_adapter(entry, pairs(24), (lambda: np.eye(12)) if classes else None)


def test_pairs_of_unlike_length_are_refused() -> None:
    with pytest.raises(BadInput, match="lengths"):
        train_adapter(AUTO, dataclasses.replace(pairs(24), captions=["one"]))
