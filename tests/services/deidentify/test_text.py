from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.deidentify.policy import load_policy
from services.deidentify.pseudonyms import ReleaseKey, pseudonym
from services.deidentify.text import Found, TextRedactor, find_entities, fold, merge, replace
from validators.contracts.dataset import Media
from validators.contracts.digest import digest_bytes

KEY = ReleaseKey(b"a" * 32, "tests")
CAPTIONS = [
    json.loads(line)
    for line in (Path(__file__).parent / "captions.jsonl").read_text(encoding="utf-8").splitlines()
]


def redact(text: str, policy: str = "gdpr-captions") -> str:
    data = text.encode()
    rule = load_policy(policy).rule("text")
    media = Media("text", digest_bytes(data), "text/plain")
    return TextRedactor(rule, KEY).redact(media, data).data.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "released"),
    [
        ("The astronaut Eileen Collins smiling", "The astronaut <PERSON> smiling"),
        ("a sleeping cat", "a sleeping cat"),
        ("Grace playing violin", "<PERSON> playing violin"),
        ("Lunch with Penelope Cruz", "Lunch with <PERSON>"),
        ("A koala", "A koala"),
        ("The letter K.", "The letter K."),
        ("Mount Fuji at dawn", "Mount Fuji at dawn"),
        ("write to jane.doe@example.org", "write to <EMAIL_ADDRESS>"),
        ("call +44 20 7946 0958 now", "call <PHONE_NUMBER> now"),
        ("call 555-0123", "call <PHONE_NUMBER>"),
        ("card 4111 1111 1111 1111", "card <CREDIT_CARD>"),
        ("身份证11010519491231002X", "身份证<ID_NUMBER>"),
        ("电话１３８１２３４５６７８", "电话<ID_NUMBER>"),
        ("ssn 123-45-6789", "ssn <ID_NUMBER>"),
        ("from 192.168.7.31", "from <IP_ADDRESS>"),
        ("see https://example.org/eileen", "see <URL>"),
        ("by @eileen_c", "by <HANDLE>"),
        ("the war of 1939-1945", "the war of 1939-1945"),
        ("in 2019, 300 people", "in 2019, 300 people"),
    ],
)
def test_a_caption_loses_what_identifies_and_keeps_the_rest(text: str, released: str) -> None:
    assert redact(text) == released


@pytest.mark.slow
def test_by_default_a_person_becomes_the_same_uuid_everywhere() -> None:
    stand_in = pseudonym(KEY, "PERSON", "Eileen Collins")
    assert redact("Portrait of Eileen Collins", "gdpr-default") == f"Portrait of {stand_in}"
    assert stand_in in redact("The astronaut Eileen Collins smiling", "gdpr-default")


@pytest.mark.slow
def test_names_in_captions_are_found_nearly_always_and_things_seldom_taken_for_them() -> None:
    found = [(item, find_entities(item["text"])) for item in CAPTIONS]
    named = [
        all(
            any(one.start <= place < one.end for one in seen)
            for start, end in item["names"]
            for place in range(start, end)
            if item["text"][place].isalpha()
        )
        for item, seen in found
        if item["names"]
    ]
    plain = [bool(seen) for item, seen in found if not item["names"]]
    assert sum(named) / len(named) >= 0.97  # 83 of 84
    assert sum(plain) / len(plain) <= 0.09  # 7 of 94


SPANS = st.lists(
    st.builds(
        lambda kind, start, length, score: Found(kind, start, start + length, score),
        st.sampled_from(["PERSON", "URL", "ID_NUMBER"]),
        st.integers(0, 30),
        st.integers(1, 10),
        st.floats(0, 1),
    ),
    max_size=8,
)


@given(SPANS)
def test_merged_findings_cover_all_that_was_found_and_do_not_overlap(spans: list[Found]) -> None:
    merged = merge(spans)
    covered = {place for one in spans for place in range(one.start, one.end)}
    assert {place for one in merged for place in range(one.start, one.end)} == covered
    assert all(a.end <= b.start for a, b in itertools.pairwise(merged))


@given(st.text(min_size=40, max_size=60), SPANS)
def test_replacing_keeps_all_other_text_and_says_where_the_replacements_are(
    text: str, spans: list[Found]
) -> None:
    found = merge(spans)
    released, regions = replace(text, found, lambda kind, _: f"<{kind}>")
    assert [released[start:end] for start, end in (item.place for item in regions)] == [
        f"<{item.kind}>" for item in found
    ]
    hidden = {place for one in spans for place in range(one.start, one.end)}
    kept = "".join(char for place, char in enumerate(text) if place not in hidden)
    for item in reversed(regions):
        start, end = item.place
        released = released[:start] + released[end:]
    assert released == kept


@given(st.text(max_size=50))
def test_folding_keeps_every_place(text: str) -> None:
    assert len(fold(text)) == len(text)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    find_entities(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["a" * 20_000, "1" * 20_000, "1 " * 10_000, "@" * 20_000, "a." * 9_999]
)
def test_a_hostile_text_is_read_to_its_end(text: str) -> None:
    assert isinstance(find_entities(text), list)
