from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.privacy_audit.names import blank_placeholders, find_names

CAPTIONS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "deidentify" / "captions.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


def strong(text: str) -> list[str]:
    return [text[name.start : name.end] for name in find_names(text) if name.strong]


def weak(text: str) -> list[str]:
    return [text[name.start : name.end] for name in find_names(text) if not name.strong]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The astronaut Eileen Collins smiling", ["Eileen Collins"]),
        ("the astronaut eileen collins smiling", ["eileen collins"]),
        ("Dr. Fernandez and Mrs Whatever", ["Dr. Fernandez", "Mrs Whatever"]),
        ("John on a bicycle", ["John"]),
        ("Anna's cat", ["Anna"]),
        ("Rose Miller in the garden", ["Rose Miller"]),
        ("A drawing by Someone Gutierrez", ["Someone Gutierrez"]),
        ("Patrick O’Neill playing", ["Patrick O’Neill"]),
    ],
)
def test_a_name_is_found(text: str, names: list[str]) -> None:
    assert strong(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "a rose in bloom",
        "A jack of hearts",
        "Will it rain in May",
        "The Great Wall of China",
        "A White House",
        "<PERSON> playing violin",
        "The astronaut 3c95b56c-862f-4886-b6e4-c98787dc2cc8 smiling",
        "",
    ],
)
def test_other_words_are_no_names(text: str) -> None:
    assert strong(text) == []


def test_two_capitals_inside_a_sentence_are_worth_a_look() -> None:
    assert weak("A picture of Qwert Zuiop standing") == ["Qwert Zuiop"]
    assert weak("A picture of the American Sign Language") == []


def test_the_lists_cover_most_captions_and_no_thing_is_certainly_a_person() -> None:
    named = [
        all(
            any(name.start < end and name.end > start for name in found)
            for start, end in item["names"]
        )
        for item in CAPTIONS
        if item["names"]
        for found in [[name for name in find_names(item["text"]) if name.strong]]
    ]
    assert sum(named) / len(named) >= 0.85  # 72 of 84
    assert [item["text"] for item in CAPTIONS if not item["names"] and strong(item["text"])] == []


@given(st.text(max_size=80))
def test_blanking_keeps_every_place_and_no_text_raises(text: str) -> None:
    assert len(blank_placeholders(text)) == len(text)
    assert all(0 <= name.start < name.end <= len(text) for name in find_names(text))
