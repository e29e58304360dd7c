"""What of live requests may be recorded: a share of them, and slices that training knows.

The plan is an asset of the bundle, so that a gateway anywhere records by what was released. Of a
caller's metadata it keeps nothing but tags that the training data has, and of those only values
that it has: anything else becomes OTHER.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from validators.contracts.dataset import Dataset
from validators.contracts.errors import BadInput
from validators.drift.columns import MAX_WORD, OTHER, most_frequent
from validators.drift.window import MAX_TAG_WORDS
from validators.lineage.tags import REQUIRED_TAGS, channel_set, clean_tag, find_tag_fault

ASSET = "recording.json"
PLAN_FORMAT = 1


@dataclass(frozen=True, slots=True)
class KnownTag:
    """A tag of the training data's lineage, and the values that it has there."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordingPlan:
    """`share` of the requests, 0 to 1, and the tags that slice them."""

    format: int = PLAN_FORMAT
    share: float = 0.0
    tags: tuple[KnownTag, ...] = ()

    def __post_init__(self) -> None:
        if self.format != PLAN_FORMAT or not 0 <= self.share <= 1:
            raise BadInput(
                "this is no plan of what to record", where=ASSET, remedy="Release again."
            )

    def slices_of(self, metadata: Mapping[str, str]) -> dict[str, str]:
        """The tags of a request; those that it does not name are left out."""
        found = {}
        for tag in self.tags:
            said = metadata.get(tag.name)
            if said is not None:
                known = {_form(tag.name, value): value for value in tag.values}
                found[tag.name] = known.get(_form(tag.name, said), OTHER)
        return found


def plan_of(dataset: Dataset, share: float) -> RecordingPlan:
    """The plan for a service that was made from this data set."""
    tags = []
    for name in REQUIRED_TAGS:
        counts = Counter(
            value for sample in dataset.samples if (value := sample.tag_map().get(name))
        )
        values = most_frequent(counts, MAX_TAG_WORDS)
        tags.append(KnownTag(name, tuple(sorted(v for v in values if len(v) <= MAX_WORD))))
    return RecordingPlan(PLAN_FORMAT, share, tuple(tag for tag in tags if tag.values))


def _form(name: str, value: str) -> str:
    """One form for one value; what is no tag at all is like no known value."""
    if find_tag_fault(value):
        return OTHER
    return channel_set(value) if name == "channels" else clean_tag(value)
