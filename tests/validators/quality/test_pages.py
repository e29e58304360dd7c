"""Data docs name no other host, run nothing, and hold what a stranger wrote as text."""

from __future__ import annotations

import html
import io
import re
import zipfile
from html.parser import HTMLParser

import pandas as pd
import pytest

from validators.quality.checkpoint import SuiteRun, run_suite
from validators.quality.pages import INDEX, pack_pages, render_pages, unpack_pages
from validators.quality.words import Severity, Suite, expect

pytestmark = pytest.mark.slow

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>&lt;b&gt;'


@pytest.fixture(scope="module")
def run() -> SuiteRun:
    frame = pd.DataFrame(
        {
            "sample": pd.Series([HOSTILE, "b", "c"], dtype=object),
            "tag.kind": pd.Series([HOSTILE, "x", "$value"], dtype=object),
            "size": [1.0, 2.0, float("nan")],
        }
    )
    return run_suite(
        Suite(
            "samples",
            (
                expect("expect_column_values_to_be_in_set", "kind", column="tag.kind",
                       value_set=("x", HOSTILE + "2")),
                expect("expect_column_values_to_be_between", "size", Severity.WARNING,
                       column="size", min_value=1.5),
                expect("expect_column_mean_to_be_between", "mean", column="size", min_value=9),
                expect("expect_column_mean_to_be_between", "gone", column=HOSTILE, min_value=9),
            ),
        ),
        frame,
    )  # fmt: skip


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links |= {value or "" for name, value in attrs if name in ("href", "src")}


def test_a_page_loads_nothing_and_runs_nothing(run: SuiteRun) -> None:
    pages = render_pages([run])
    assert set(pages) == {INDEX, "samples.html", "samples-suite.html"}
    for data in pages.values():
        text, reader = data.decode(), Reader()
        reader.feed(text)
        assert reader.tags.isdisjoint({"script", "img", "link", "iframe", "object", "svg", "form"})
        assert not any(name.startswith("on") or name == "style" for name in reader.attributes)
        assert "src" not in reader.attributes
        assert all(re.fullmatch(r"(#|\w[\w-]*\.html).*", link) for link in reader.links)
        assert "://" not in text
        assert "default-src 'none'" in text


def test_a_page_says_what_was_found_by_id(run: SuiteRun) -> None:
    text = render_pages([run])["samples.html"].decode()
    rows = text.split("<h2>Bad rows</h2>")[1].split("</table>")[0]
    assert f"<td>kind-tag-kind</td><td>x or {html.escape(HOSTILE)}2</td><td>2</td>" in rows
    assert f"<td>{html.escape(HOSTILE)}, c</td>" in rows
    assert "Failed" in text
    assert "there is no column" in text
    assert "newsletter" not in text


def test_pages_and_their_archive_are_the_same_every_time(run: SuiteRun) -> None:
    first, again = render_pages([run]), render_pages([run])
    assert first == again
    packed = pack_pages(first)
    assert packed == pack_pages(dict(reversed(first.items())))
    assert unpack_pages(packed) == first


def test_an_archive_with_other_names_is_read_without_them() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("../up.html", "/abs.html", "a/b.html", "x.js", "good.html"):
            archive.writestr(name, b"x")
    assert unpack_pages(stream.getvalue()) == {"good.html": b"x"}


def test_no_run_gives_no_page() -> None:
    assert render_pages([]) == {}
