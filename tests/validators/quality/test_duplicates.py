from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.validators.quality.rows import dataset, own, row, rows
from validators.contracts.dataset import FINGERPRINTS, Media, Sample
from validators.contracts.quality import Consequence, DuplicateRules
from validators.contracts.verdict import Finding, Outcome
from validators.quality.duplicates import (
    copies_of,
    find_copies,
    find_near,
    judge_duplicates,
)
from validators.quality.words import MAX_NAMED

RULES = DuplicateRules()


def hashed(name: str, bits: int, **measures: float) -> Media:
    """A picture with a difference hash."""
    parts = {key: float(bits >> (16 * at) & 0xFFFF) for at, key in enumerate(FINGERPRINTS[:4])}
    parts |= {key: measures.pop(key, 0.0) for key in FINGERPRINTS[4:]}
    return own(name, "image", **parts, brightness=measures.pop("brightness", 100.0), **measures)


def pictures(*bits: int, **measures: float) -> list[Sample]:
    return [
        replace(row(f"p{at}"), media=(hashed(f"p{at}", value, **measures),))
        for at, value in enumerate(bits)
    ]


def copies(count: int, *names: str) -> list[Sample]:
    """`count` contents, each under every one of the names."""
    return [
        replace(row(f"{name}{at:03d}"), media=(own(f"content {at}", "image"),))
        for at in range(count)
        for name in names
    ]


def judged(*samples: Sample, rules: DuplicateRules = RULES, **around: object) -> list[Finding]:
    return list(judge_duplicates(copies_of(dataset(*samples), rules), rules, **around))  # type: ignore[arg-type]


def test_one_content_under_two_ids_is_named_by_both() -> None:
    (found,) = judged(*copies(1, "a", "b"), *rows(3))
    assert (found.code, found.subject) == ("duplicate-content-image", "a000=b000")
    assert found.outcome is Outcome.WARN


def test_a_copy_on_both_sides_of_the_split_is_worse_and_names_the_sides() -> None:
    (found,) = judged(*copies(1, "a", "b"), held_out={"b000"})
    assert (found.code, found.outcome) == ("duplicate-across-splits-image", Outcome.FAIL)
    assert found.measured == "2 samples: a000, b000 (held out)"


def test_where_the_platform_drew_the_split_a_copy_across_it_warns() -> None:
    (found,) = judged(*copies(1, "a", "b"), held_out={"b000"}, declared=False)
    assert (found.code, found.outcome) == ("duplicate-across-splits-image", Outcome.WARN)


def test_a_copy_across_the_split_of_what_nothing_is_fitted_on_is_a_plain_copy() -> None:
    (found,) = judged(*copies(1, "a", "b"), held_out={"b000"}, fitted=["audio"])
    assert found.code == "duplicate-content-image"


def test_a_frame_that_is_held_within_a_recording_is_no_copy_unless_the_split_parts_it() -> None:
    frames = [
        replace(item, tags=(*item.tags, ("recording", "walk"))) for item in copies(1, "a", "b")
    ]
    near = [
        replace(item, tags=(*item.tags, ("recording", "walk"))) for item in pictures(BITS, BITS ^ 1)
    ]
    assert judged(*frames, *near) == []
    (found,) = judged(*frames, held_out={"a000"})
    assert found.code == "duplicate-across-splits-image"
    elsewhere = replace(frames[1], tags=(*frames[1].tags[:-1], ("recording", "ride")))
    assert [item.code for item in judged(frames[0], elsewhere)] == ["duplicate-content-image"]


def test_captions_may_repeat_unless_the_file_says_otherwise() -> None:
    same = [replace(row(name), media=(own("caption", "text"),)) for name in "ab"]
    assert judged(*same) == []
    (found,) = judged(*same, rules=DuplicateRules(ignore=()))
    assert found.code == "duplicate-content-text"


def test_a_set_copied_whole_is_told_in_bounded_findings() -> None:
    found = judged(*copies(500, "a", "b"))
    assert len(found) == MAX_NAMED + 1
    assert found[-1].subject == f"groups+{500 - MAX_NAMED}"
    assert len(find_copies(dataset(*copies(500, "a", "b")), ())) == 500


@pytest.mark.parametrize("consequence", list(Consequence))
def test_each_rule_does_what_the_file_says(consequence: Consequence) -> None:
    rules = DuplicateRules(exact=consequence, across_splits=consequence, near=consequence)
    found = judged(*copies(1, "a", "b"), *pictures(BITS, BITS ^ 1), rules=rules, held_out={"b000"})
    wanted = {"off": None, "warn": Outcome.WARN, "fail": Outcome.FAIL}[consequence.value]
    assert {item.outcome for item in found} == ({wanted} if wanted else set())


BITS = 0x0F1E_2D3C_4B5A_6978


@pytest.mark.parametrize(
    ("other", "near"),
    [
        (BITS, True),
        (BITS ^ 0b1, True),
        (BITS ^ (1 << 63 | 1 << 40 | 1 << 20), True),  # three bits in three of four parts
        (BITS ^ (1 << 63 | 1 << 40 | 1 << 20 | 1), False),
        (~BITS & (2**64 - 1), False),
    ],
)
def test_pictures_that_differ_in_three_bits_are_nearly_the_same(other: int, near: bool) -> None:
    found = find_near(dataset(*pictures(BITS, other)), 3, ())
    assert found == ([("image", ("p0", "p1"))] if near else [])


@pytest.mark.parametrize("measure", ["brightness", "tone_red", "tone_blue"])
def test_the_same_shape_in_another_light_or_colour_is_another_picture(measure: str) -> None:
    one, other = pictures(BITS, BITS)
    other = replace(other, media=(hashed("p1", BITS, **{measure: 160.0}),))
    assert find_near(dataset(one, other), 3, ()) == []


@pytest.mark.parametrize("bits", [0, 0b11, 2**64 - 1])
def test_flat_pictures_are_not_taken_for_copies(bits: int) -> None:
    assert find_near(dataset(*pictures(bits, bits, bits)), 3, ()) == []


def test_the_same_bytes_are_a_copy_and_not_nearly_one() -> None:
    one, other = pictures(BITS, BITS)
    assert find_near(dataset(one, replace(other, media=one.media)), 3, ()) == []


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=8), st.integers(0, 2**64 - 1))
def test_every_near_pair_is_found_and_no_other(values: list[int], flips: int) -> None:
    bits = [*values, values[0] ^ (flips & 0x8000_0000_0000_0001)]
    telling = [6 <= value.bit_count() <= 58 for value in bits]
    wanted = {
        (f"p{one}", f"p{other}")
        for one in range(len(bits))
        for other in range(one + 1, len(bits))
        if (bits[one] ^ bits[other]).bit_count() <= 3 and telling[one] and telling[other]
    }
    found = {ids for _, ids in find_near(dataset(*pictures(*bits)), 3, ())}
    assert found == wanted


def test_many_pictures_are_compared_within_bounds() -> None:
    drawn = np.random.default_rng(0).integers(0, 2**63, 3000)
    found = find_near(
        dataset(*pictures(*(int(value) for value in drawn), int(drawn[5]) ^ 4)), 3, ()
    )
    assert ("image", ("p3000", "p5")) in found or ("image", ("p5", "p3000")) in found
