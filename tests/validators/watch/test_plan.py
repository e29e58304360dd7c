"""Of a caller's metadata nothing is kept but slices that training knows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.dataset import Dataset, Sample
from validators.contracts.errors import BadInput
from validators.drift.columns import OTHER
from validators.watch.plan import KnownTag, RecordingPlan, plan_of

TAGS = (("channels", "RGB"), ("lighting", "day"), ("note", "private"), ("sensor", "camera"))


def test_the_plan_knows_the_tags_of_the_training_data_and_no_others() -> None:
    plan = plan_of(Dataset((Sample("a", (), TAGS), Sample("b", (), TAGS))), 0.1)
    assert plan.tags == (
        KnownTag("sensor", ("camera",)), KnownTag("channels", ("RGB",)),
        KnownTag("lighting", ("day",)),
    )  # fmt: skip


@pytest.mark.parametrize(("said", "kept"), [
    ("camera", "camera"), (" camera ", "camera"), ("ｃａｍｅｒａ", "camera"),
    ("Ada Lovelace", OTHER), ("", OTHER), ("camera\u200b", OTHER), ("x" * 10_000, OTHER),
])  # fmt: skip
def test_a_value_is_one_that_training_knows_or_other(said: str, kept: str) -> None:
    plan = RecordingPlan(share=1.0, tags=(KnownTag("sensor", ("camera",)),))
    assert plan.slices_of({"sensor": said, "name": "Ada"}) == {"sensor": kept}


def test_channels_are_sets() -> None:
    plan = RecordingPlan(share=1.0, tags=(KnownTag("channels", ("RGB+IR",)),))
    assert plan.slices_of({"channels": "ir + RGB"}) == {"channels": "RGB+IR"}


@given(st.dictionaries(st.sampled_from(["sensor", "channels", "x"]), st.text()))
def test_nothing_that_a_caller_wrote_gets_through(metadata: dict[str, str]) -> None:
    plan = plan_of(Dataset((Sample("a", (), TAGS),)), 0.1)
    found = plan.slices_of(metadata)
    assert set(found.values()) <= {"camera", "RGB", OTHER}
    assert set(found) <= set(metadata) - {"x"}


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_is_a_share(share: float) -> None:
    with pytest.raises(BadInput):
        RecordingPlan(share=share)
