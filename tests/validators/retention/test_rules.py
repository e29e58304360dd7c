from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts.digest import Digest, digest_value, hex_of
from validators.retention import Holder, Use, plan_pruning, use_of

KEYS = [digest_value("engine", number) for number in range(8)]
NOW_MS, GRACE_MS = 10_000, 1000

_Keys = st.frozensets(st.sampled_from(KEYS), max_size=4)
_Holders = st.lists(
    st.builds(Holder, st.text("abc", min_size=1), st.sampled_from(list(Use)), _Keys), max_size=6
)
_Ages = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 2 * GRACE_MS))


def names(keys: frozenset[Digest]) -> dict[str, Digest]:
    """The references of built and of verified engines, and of background builds."""
    prefixes = ("engines/{}", "engines-verified/{}/host", "builds/shop/{}")
    return {prefix.format(hex_of(key)): key for key in keys for prefix in prefixes}


@given(stored=_Keys, holders=_Holders, ages=_Ages)
def test_what_is_held_never_goes_and_everything_else_goes_after_its_grace(
    stored: frozenset[Digest], holders: list[Holder], ages: dict[Digest, int]
) -> None:
    references = names(stored)
    since = {name: NOW_MS - ages[key] for name, key in references.items() if key in ages}
    plan = plan_pruning(references, holders, since_ms=since, now_ms=NOW_MS, grace_ms=GRACE_MS)
    held = {key for holder in holders if holder.use is not Use.NONE for key in holder.keys}
    for name, key in references.items():
        if key in held:
            assert name not in plan.remove and name not in plan.waiting
        else:
            assert (name in plan.remove) == (ages.get(key, 0) >= GRACE_MS)
            assert (name in plan.waiting) == (name not in plan.remove)
    assert set(plan.since_ms) == set(plan.waiting)


@given(stored=_Keys, holders=_Holders)
def test_what_is_first_seen_now_goes_at_the_first_run_after_its_grace(
    stored: frozenset[Digest], holders: list[Holder]
) -> None:
    references = names(stored)
    first = plan_pruning(references, holders, since_ms={}, now_ms=NOW_MS, grace_ms=GRACE_MS)
    assert first.remove == ()
    second = plan_pruning(
        references, holders,
        since_ms=first.since_ms, now_ms=NOW_MS + GRACE_MS, grace_ms=GRACE_MS,
    )  # fmt: skip
    assert second.remove == first.waiting and second.waiting == ()


def test_what_is_held_again_in_between_starts_its_grace_anew() -> None:
    references, holder = names(frozenset(KEYS[:1])), Holder("shop 1", Use.LIVE, frozenset(KEYS))
    first = plan_pruning(references, [], since_ms={}, now_ms=0, grace_ms=GRACE_MS)
    held = plan_pruning(
        references, [holder], since_ms=first.since_ms, now_ms=500, grace_ms=GRACE_MS
    )
    assert held.since_ms == {}
    last = plan_pruning(references, [], since_ms=held.since_ms, now_ms=GRACE_MS, grace_ms=GRACE_MS)
    assert last.remove == ()


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ([], Use.NONE),
        ([Use.REGISTERED, Use.LIVE, Use.ROLLBACK], Use.LIVE),
        ([Use.RELEASED, Use.ROLLBACK], Use.ROLLBACK),
        ([Use.NONE], Use.NONE),
    ],
)
def test_the_strongest_use_counts(uses: list[Use], expected: Use) -> None:
    holders = [Holder(use.value, use, frozenset(KEYS)) for use in uses]
    found, by = use_of(KEYS[0], holders)
    assert found is expected
    assert len(by) == len([use for use in uses if use is not Use.NONE])
