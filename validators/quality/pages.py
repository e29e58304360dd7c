"""Data docs: Great Expectations' own pages about what the suites found, safe to open anywhere.

Its templates load style sheets, fonts and programs from other hosts, and put values into the page
as they are. So a value is escaped before it is rendered, and what comes out is written anew with
the tags and attributes below and nothing else: no script, no style attribute, no address of another
host. Our own style sheet stands in the page, and its content security policy forbids the rest.
The same results give the same bytes.
"""

from __future__ import annotations

import html
import io
import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

from validators.quality.checkpoint import SuiteRun
from validators.quality.naming import code_of, wanted_by
from validators.quality.suite_file import write_suite

INDEX = "index.html"
MAX_ARCHIVE_BYTES = 64 * 1024 * 1024
"""Of pages together, unpacked."""

_TAGS = frozenset(
    {
        "a", "b", "br", "code", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "li",
        "nav", "ol", "p", "pre", "small", "span", "strong", "table", "tbody", "td", "th", "thead",
        "tr", "ul",
    }
)  # fmt: skip
_SKIPPED = frozenset({"footer", "script", "style", "svg", "title", "iframe", "object", "template"})
_CHOICES = ("btn-group", "card mb-3", "navbar-expand", "ge-walkthrough")
"""Classes of what needs programs that are not there, or advertises."""

SHOWN_IDS = 200
"""Bad rows of one expectation that a page names."""

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
_ATTRIBUTES = frozenset({"class", "id", "colspan", "hidden"})
_UNIQUE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LOCAL = re.compile(r"#[\w.-]+|[\w-]+\.html(#[\w.-]+)?")

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:72rem;padding:1rem;color:#222}
table{border-collapse:collapse;margin:.5rem 0;width:100%}
td,th{border:1px solid #ddd;padding:.3rem .5rem;text-align:left;vertical-align:top}
th{background:#f5f5f5}
.alert,.card-header{background:#f1f3f5;padding:.5rem .75rem;margin:.75rem 0 .25rem}
ul.nav{columns:3;padding-left:1rem}
.text-success,.pass{color:#1a7f37}.text-danger,.fail{color:#b42318}.text-warning{color:#9a6700}
.fa-check-circle::before,.fa-check::before{content:"\\2713"}
.fa-times::before,.fa-times-circle::before{content:"\\2717"}
.fa-exclamation-triangle::before{content:"\\26a0"}
.badge{background:#eef;border-radius:.25rem;padding:0 .3rem}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render_pages(runs: Sequence[SuiteRun]) -> dict[str, bytes]:
    """The site by file name: an index, and for each suite its results and its expectations."""
    if not runs:
        return {}
    # Imported here for the reason that `checkpoint` gives; that import was paid before this one.
    from great_expectations.core import ExpectationSuite  # noqa: PLC0415
    from great_expectations.core.expectation_validation_result import (  # noqa: PLC0415
        expectationSuiteValidationResultSchema as results_schema,
    )
    from great_expectations.render.renderer.page_renderer import (  # noqa: PLC0415
        ExpectationSuitePageRenderer,
        ValidationResultsPageRenderer,
    )
    from great_expectations.render.view.view import DefaultJinjaPageView  # noqa: PLC0415

    # Their renderers carry no types.
    view: Any = DefaultJinjaPageView()
    of_results: Any = ValidationResultsPageRenderer()
    of_suite: Any = ExpectationSuitePageRenderer()
    pages = {INDEX: _index(runs)}
    for run in runs:
        name = run.suite.name
        results = results_schema.load(_escaped(run.document))
        told = view.render(of_results.render(results))
        pages[f"{name}.html"] = _page(f"Quality: {name}", told, name, _bad_rows(run))
        stated = json.loads(write_suite(run.suite))
        suite = ExpectationSuite(name=name, expectations=_escaped(stated["expectations"]), meta={})
        told = view.render(of_suite.render(suite))
        pages[f"{name}-suite.html"] = _page(f"Expectations: {name}", told, name)
    return pages


def pack_pages(pages: Mapping[str, bytes]) -> bytes:
    """The site as one ZIP file; the same pages give the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, data in sorted(pages.items()):
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, data)
    return stream.getvalue()


def unpack_pages(data: bytes) -> dict[str, bytes]:
    """The site of an archive that `pack_pages` wrote; anything that it would not write is left."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = [item for item in archive.infolist() if _LOCAL.fullmatch(item.filename)]
        if sum(item.file_size for item in entries) > MAX_ARCHIVE_BYTES:
            return {}
        return {item.filename: archive.read(item) for item in entries}


def _index(runs: Iterable[SuiteRun]) -> bytes:
    rows = "".join(
        f'<tr><td><a href="{name}.html">{name}</a></td><td>{len(run.frame)}</td>'
        f"<td>{len(run.checked)}</td><td>{sum(not item.met for item in run.checked)}</td>"
        f'<td><a href="{name}-suite.html">expectations</a></td></tr>'
        for run in runs
        for name in [html.escape(run.suite.name)]
    )
    head = "<tr><th>suite</th><th>rows</th><th>expectations</th><th>unmet</th><th></th></tr>"
    table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
    return _document("Data quality", f"<h1>Data quality</h1>{table}")


def _bad_rows(run: SuiteRun) -> str:
    """A table of the bad rows by id, an expectation a line."""
    rows = "".join(
        f"<tr><td>{html.escape(code_of(item.expectation))}</td>"
        f"<td>{html.escape(wanted_by(item.expectation))}</td><td>{len(item.rows)}</td>"
        f"<td>{html.escape(_named(run, item.rows))}</td></tr>"
        for item in run.checked
        if item.rows
    )
    if not rows:
        return "<h2>Bad rows</h2><p>none</p>"
    head = "<tr><th>finding</th><th>wanted</th><th>rows</th><th>samples</th></tr>"
    return f"<h2>Bad rows</h2><table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _named(run: SuiteRun, rows: tuple[int, ...]) -> str:
    more = f" and {len(rows) - SHOWN_IDS} more" if len(rows) > SHOWN_IDS else ""
    return ", ".join(run.ids(rows[:SHOWN_IDS])) + more


def _page(title: str, told: str, name: str, more: str = "") -> bytes:
    writer = _Writer()
    writer.feed(told)
    writer.close()
    links = (
        f'<p><a href="{INDEX}">all suites</a> | <a href="{name}.html">results</a> | '
        f'<a href="{name}-suite.html">expectations</a></p>'
    )
    return _document(title, f"<h1>{html.escape(title)}</h1>{links}{more}{writer.text()}")


def _document(title: str, body: str) -> bytes:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    ).encode()


def _escaped(value: Any) -> Any:
    """The value with every text as HTML would have to write it."""
    if isinstance(value, str):
        return html.escape(value)
    if isinstance(value, Mapping):
        return {key: _escaped(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(item) for item in value]
    return value


class _Writer(HTMLParser):
    """Writes a page's body anew, with what is allowed and nothing else."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._open: list[tuple[str, bool, bool]] = []  # tag, whether written, whether skipped

    def text(self) -> str:
        """The body. Numbers stand for what was unique to the moment of rendering."""
        seen: dict[str, str] = {}
        joined = "".join(self._parts)
        joined = _UNIQUE.sub(lambda found: seen.setdefault(found[0], f"n{len(seen)}"), joined)
        return re.sub(r"\n\s*\n+", "\n", re.sub(r"[ \t]+", " ", joined))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        skipped = self._skipping or tag in _SKIPPED or tag in ("head", "label", "button")
        skipped = skipped or any(word in values.get("class", "") for word in _CHOICES)
        written = tag in _TAGS and not skipped
        if written:
            self._parts.append(f"<{tag}{self._attributes(tag, values)}>")
        if tag not in _VOID:
            self._open.append((tag, written, skipped))

    def handle_endtag(self, tag: str) -> None:
        if not any(name == tag for name, _, _ in self._open):
            return
        while self._open:
            name, written, _ = self._open.pop()
            if written:
                self._parts.append(f"</{name}>")
            if name == tag:
                return

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self._parts.append(html.escape(data))

    @property
    def _skipping(self) -> bool:
        return bool(self._open) and self._open[-1][2]

    @staticmethod
    def _attributes(tag: str, values: Mapping[str, str]) -> str:
        kept = {name: values[name] for name in sorted(_ATTRIBUTES & values.keys())}
        if tag == "a" and _LOCAL.fullmatch(values.get("href", "")):
            kept["href"] = values["href"]
        return "".join(f' {name}="{html.escape(value)}"' for name, value in kept.items())
