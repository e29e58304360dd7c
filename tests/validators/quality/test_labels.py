from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.validators.quality.rows import dataset, own, row
from validators.contracts.dataset import Dataset
from validators.contracts.quality import Consequence, LabelRules, QualityRules
from validators.contracts.verdict import Outcome
from validators.quality.labels import evenness, judge_labels, label_metrics
from validators.quality.reference import QualityReference, reference_of

BY_KIND = LabelRules(tag="kind", index="place")


def labelled(*kinds: str, **places: str) -> Dataset:
    """A sample a kind, with its place in the order where one is given."""
    return dataset(
        *(
            row(f"s{at:04d}", kind=kind, **({"place": places[kind]} if kind in places else {}))
            for at, kind in enumerate(kinds)
        )
    )


def codes(
    data: Dataset, rules: LabelRules = BY_KIND, reference: QualityReference | None = None
) -> dict[str, Outcome]:
    found = judge_labels(data, rules, reference, minimum_samples=20)
    return {item.code: item.outcome for item in found}


def before(*kinds: str, order: tuple[str, ...] = (), **places: str) -> QualityReference:
    return reference_of(labelled(*kinds, **places), QualityRules(labels=BY_KIND), order)


EVEN = ["cat", "dog"] * 12


def test_balanced_classes_are_no_finding() -> None:
    assert codes(labelled(*EVEN)) == {}


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        (["cat"] * 90 + ["dog"] * 10, {"class-imbalance": Outcome.WARN}),
        (["cat"] * 80 + ["dog"] * 20, {}),  # exactly the largest share
        (["cat"] * 50 + ["dog"] * 46 + ["owl"] * 4, {"class-rare": Outcome.WARN}),
        (["cat"] * 30, {"class-imbalance": Outcome.WARN}),  # one class
        (["cat"] * 9 + ["dog"], {}),  # fewer samples than decide
        ([""] * 30, {"class-missing": Outcome.FAIL}),
    ],
)
def test_the_balance_of_classes(kinds: list[str], found: dict[str, Outcome]) -> None:
    assert codes(labelled(*kinds)) == found


def test_a_class_that_nobody_declared_fails() -> None:
    rules = replace(BY_KIND, classes=("cat",))
    assert codes(labelled(*EVEN), rules) == {"class-unknown": Outcome.FAIL}


def test_a_class_that_vanished_fails_and_is_named() -> None:
    found = judge_labels(labelled(*EVEN), BY_KIND, before("cat", "dog", "owl"), minimum_samples=20)
    (item,) = found
    assert (item.code, item.measured) == ("class-vanished", "1: owl")


@pytest.mark.parametrize(
    ("places", "reference"),
    [
        ({"cat": "1", "dog": "0"}, before("cat", "dog", cat="0", dog="1")),
        ({"cat": "1", "dog": "0"}, before("cat", "dog", order=("cat", "dog"))),
        ({"cat": "0", "dog": "0"}, None),  # one place for two classes
    ],
)
def test_another_order_of_the_classes_fails_though_nothing_is_missing(
    places: dict[str, str], reference: QualityReference | None
) -> None:
    assert codes(labelled(*EVEN, **places), reference=reference) == {"class-order": Outcome.FAIL}


def test_the_declared_order_is_compared_with_that_of_before_and_with_the_tags() -> None:
    rules = replace(BY_KIND, classes=("cat", "dog"))
    turned = replace(BY_KIND, classes=("dog", "cat"))
    reference = before("cat", "dog", order=("cat", "dog"))
    assert codes(labelled(*EVEN), rules, reference) == {}
    assert codes(labelled(*EVEN), turned, reference) == {"class-order": Outcome.FAIL}
    assert codes(labelled(*EVEN, cat="1", dog="0"), rules) == {"class-order": Outcome.FAIL}
    assert codes(labelled(*EVEN, cat="0", dog="1"), rules, reference) == {}


def test_a_class_with_two_places_fails() -> None:
    data = dataset(*(row(f"s{at}", kind="cat", place=str(at % 2)) for at in range(4)))
    assert codes(data) == {"class-order": Outcome.FAIL}


def test_captions_are_classes_where_no_tag_is_named_and_are_not_quoted() -> None:
    data = dataset(
        *(
            replace(row(f"s{at:02d}"), media=(own("a red cat" if at else "a dog", "text"),))
            for at in range(30)
        )
    )
    found = list(judge_labels(data, LabelRules(), None, minimum_samples=20))
    assert {item.code for item in found} == {"class-imbalance", "class-rare"}
    assert "cat" not in str(found).replace("quality", "").replace("class", "")
    assert label_metrics(data, LabelRules())["classes"] == 2


def test_each_rule_can_be_off() -> None:
    off = Consequence.OFF
    rules = replace(
        BY_KIND, classes=("owl",), rare=off, imbalance=off, unknown=off, vanished=off, reordered=off
    )
    data = labelled(*["cat"] * 90, *["dog"], cat="3", dog="3")
    assert codes(data, rules, before("cat", "fox", cat="0")) == {}


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.integers(1, 1000), min_size=1))
def test_evenness_is_a_share_and_one_for_equal_classes(counts: dict[str, int]) -> None:
    assert -1e-9 <= evenness(counts) <= 1 + 1e-9
    assert evenness(dict.fromkeys(counts, 7)) == pytest.approx(1)
