"""Documents as blocks of text, page by page: a page's blocks come before the next page is touched.

A page with a text layer of its own gives that (`text-layer`); a scanned page, and one whose text
layer is garbled, is drawn and recognised (`ocr`). With `Form.ocr` "always" every page is
recognised, and its text layer, where it has one, is compared with what is seen. An item's `place`
is that of its `layout.Block`.

Anomalies, by page (from 0):
    blank-page: no text on it.
    garbled-text-layer: a text layer that does not map to characters; the page was recognised.
    text-layer-disagrees: what is seen is not what the text layer says; what is seen is given out.
    turned-page: it lies on its side or upside down; boxes are on the page as it lies.
    unsure-lines: lines that were recognised with too little confidence, left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from services.ingest.measures import Measures
from services.ingest.media.layout import Block, reading_order, turn_back
from services.ingest.media.limits import Form, MediaLimits
from services.ingest.media.pages import Page, TextLine, open_pages
from services.ingest.media.recognition import recognise
from services.ingest.media.sources import MediaFile
from services.ingest.media.tracks import Decoding
from services.ingest.tracks import Item
from validators.contracts.errors import BadInput, TooLarge

AGREEMENT = 0.7
"""Of the characters of text layer and recognition, below which they disagree."""

_OCR = ("auto", "always", "never")


class DocumentTrack(Decoding):
    """A `MediaTrack` of texts. `Form.page_times_ms` says when each page was shown.

    Raises, on opening: Unsupported (also for a password), TooLarge, BadInput.
    """

    def __init__(self, file: MediaFile, limits: MediaLimits, form: Form) -> None:
        times = form.page_times_ms
        if form.ocr not in _OCR or any(b < a for a, b in pairwise(times)):
            raise BadInput(
                "the form asks for an unknown ocr mode, or its page times go back",
                where="form", remedy=f"Take ocr of {', '.join(_OCR)}, and times that do not fall.",
            )  # fmt: skip
        super().__init__(file, limits, form.modality or "document")
        self._form = form
        self._pages = open_pages(file, limits)
        self._counts: Counter[str] = Counter()
        self._confidence = 0.0
        self._agreed = (0.0, 0)  # sum over pages, pages

    @property
    def period_ms(self) -> float | None:
        return None

    @property
    def feature_dims(self) -> tuple[int, ...]:
        return ()

    @property
    def measures(self) -> Measures:
        blocks = self._counts["blocks"]
        values = {
            "blocks": float(blocks),
            "characters": float(self._counts["characters"]),
            "confidence": self._confidence / blocks if blocks else 0.0,
            "ocr_pages": float(self._counts["ocr"]),
            "pages": float(self._counts["pages"]),
            "text_layer_pages": float(self._counts["text-layer"]),
        }
        agreed, compared = self._agreed
        if compared:
            values["agreement"] = agreed / compared
        return tuple(sorted((name, round(value, 6)) for name, value in values.items()))

    def items(self) -> Iterator[Item]:
        """One text for each block, in reading order; `duration_ms` lasts until the next page."""
        index = 0
        mode = self._form.ocr
        for page in self._pages.pages(draw_all=mode == "always", draw_untexted=mode != "never"):
            self._counts["pages"] += 1
            start_ms = self._time(page.number - 1)
            length_ms = self._time(page.number) - start_ms
            for block in self._blocks(page, start_ms):
                yield Item(index, start_ms, block.text, length_ms, block.place)
                index += 1

    def _time(self, page: int) -> float:
        times = self._form.page_times_ms
        return times[min(page, len(times) - 1)] if times else 0.0

    def _blocks(self, page: Page, ts_ms: float) -> list[Block]:
        at = page.number - 1
        if page.garbled:
            self._log.add("garbled-text-layer", at, ts_ms, f"{len(page.text)} lines")
        blocks = self._layer(page, ts_ms) if page.pixels is None else self._seen(page, ts_ms)
        if len(blocks) > self._limits.blocks_per_page:
            raise TooLarge(
                f"a page has {len(blocks)} blocks, more than {self._limits.blocks_per_page}",
                where=f"{self._file.name}, page {page.number}",
                remedy="Split it, or raise the limit.",
            )
        if not blocks:
            self._log.add("blank-page", at, ts_ms, "no text")
            return []
        self._counts[blocks[0].source] += 1
        self._counts["blocks"] += len(blocks)
        self._counts["characters"] += sum(len(block.text) for block in blocks)
        self._confidence += sum(block.confidence for block in blocks)
        return blocks

    def _layer(self, page: Page, ts_ms: float) -> list[Block]:
        turns = page.quarter_turns
        if turns:
            self._log.add("turned-page", page.number - 1, ts_ms, _turned(turns))
        upright = [turn_back(line.box, -turns) for line in page.text]
        order = reading_order(upright, 1 / page.aspect if turns % 2 else page.aspect)
        lines = [page.text[at] for at in order]
        return [
            Block(page.number, number, line.box, "text-layer", 1.0, line.text)
            for number, line in enumerate(lines, 1)
        ]

    def _seen(self, page: Page, ts_ms: float) -> list[Block]:
        if page.pixels is None:
            return []
        found = recognise(page.pixels)
        at = page.number - 1
        if found.quarter_turns:
            self._log.add("turned-page", at, ts_ms, _turned(found.quarter_turns))
        if found.unsure:
            self._log.add("unsure-lines", at, ts_ms, f"{found.unsure} lines")
        aspect = 1 / page.aspect if found.quarter_turns % 2 else page.aspect
        order = reading_order(found.upright, aspect)
        lines = [found.lines[which] for which in order]
        if page.text and not page.garbled:
            self._compare(page.text, [line.text for line in lines], at, ts_ms)
        return [
            Block(page.number, number, line.box, "ocr", line.confidence, line.text)
            for number, line in enumerate(lines, 1)
        ]

    def _compare(self, layer: tuple[TextLine, ...], seen: list[str], at: int, ts_ms: float) -> None:
        share = agreement("".join(line.text for line in layer), "".join(seen))
        agreed, compared = self._agreed
        self._agreed = (agreed + share, compared + 1)
        if share < AGREEMENT:
            self._log.add("text-layer-disagrees", at, ts_ms, f"{share:.2f} of the characters agree")


def _turned(quarter_turns: int) -> str:
    return f"{90 * quarter_turns} degrees counterclockwise make it upright"


def agreement(one: str, two: str) -> float:
    """How many characters two texts share, 0..1 (Dice), whatever their order, case and spaces."""
    first, second = (Counter("".join(text.casefold().split())) for text in (one, two))
    both = sum(first.values()) + sum(second.values())
    return 2 * sum((first & second).values()) / both if both else 1.0
