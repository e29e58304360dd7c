"""Pages of a document: of a PDF through PDFium, or one picture, each bounded before it is drawn.

Nothing of a PDF runs: no forms, no scripts, no attachments, no links.
"""

from __future__ import annotations

import contextlib
import math
import threading
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pypdfium2 as pdfium
from PIL import Image, ImageOps

from services.ingest.media.layout import Box, turn_back
from services.ingest.media.limits import MediaLimits
from services.ingest.media.sources import MediaFile
from validators.contracts.errors import BadInput, TooLarge, Unsupported

RENDER_DPI = 150
POINTS_PER_INCH = 72
MAX_PICTURE_PIXELS = 100_000_000
PICTURE_FORMATS = ("JPEG", "PNG")

_PDFIUM = threading.Lock()  # it is not safe in threads, not even with two documents
_PASSWORD = 4  # FPDF_ERR_PASSWORD
_READABLE_SHARE = 0.9
_ASKED = 200  # characters of a page whose direction is looked at
_MAX_SIDE_PX = 8192
_BGR = pdfium.raw.FPDFBitmap_BGR


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a page's own text layer."""

    box: Box
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """`number` counts from 1; `pixels` are BGR uint8 [H, W, 3], None where they were not asked for.

    `aspect` is height over width. `text` is its text layer, which so many `quarter_turns`
    counterclockwise make upright; `garbled` says that much of it does not map to characters.
    """

    number: int
    aspect: float
    text: tuple[TextLine, ...]
    quarter_turns: int
    garbled: bool
    pixels: npt.NDArray[np.uint8] | None


class PdfPages:
    """The pages of a PDF, each drawn when its turn comes.

    Raises, on opening:
        Unsupported: protected by a password.
        BadInput: damaged, or without pages.  TooLarge: more pages than its limit.
    """

    def __init__(self, file: MediaFile, limits: MediaLimits) -> None:
        self._file = file
        self._limits = limits
        with self._document() as document:
            self.count = len(document)
        if self.count > limits.pages:
            raise TooLarge(
                f"the document has {self.count} pages, more than {limits.pages}",
                where=file.name, remedy="Split it, or raise the limit.",
            )  # fmt: skip

    def pages(self, *, draw_all: bool, draw_untexted: bool) -> Iterator[Page]:
        """In order, one in memory. Raises: BadInput, TooLarge, naming the page."""
        with self._document() as document:
            for at in range(self.count):
                yield self._page(document, at, draw_all, draw_untexted)

    def _page(
        self, document: pdfium.PdfDocument, at: int, draw_all: bool, draw_untexted: bool
    ) -> Page:
        where = f"{self._file.name}, page {at + 1}"
        with _PDFIUM, _explained(where), contextlib.closing(document.get_page(at)) as page:
            width, height = page.get_size()
            _check_size(width, height, self._limits, where)
            lines, turns = _text_layer(page, width, height, self._limits.blocks_per_page, where)
            garbled = bool(lines) and not _readable(lines)
            draw = draw_all or (draw_untexted and (garbled or not lines))
            pixels = _draw(page, width, height, self._limits) if draw else None
        return Page(at + 1, height / width, lines, turns, garbled, pixels)

    @contextmanager
    def _document(self) -> Iterator[pdfium.PdfDocument]:
        with self._file.view() as view:
            with _PDFIUM:
                document = self._open(view)
            try:
                yield document
            finally:
                with _PDFIUM:
                    document.close()

    def _open(self, view: object) -> pdfium.PdfDocument:
        # A document without pages fails without a reason of its own: the last one must not be
        # that of an earlier document.
        pdfium.raw.FPDF_LoadMemDocument(b"", 0, None)
        try:
            return pdfium.PdfDocument(view)
        except pdfium.PdfiumError as error:
            if error.err_code == _PASSWORD:
                raise Unsupported(
                    "the document is protected by a password", where=self._file.name,
                    remedy="Save it without a password, and give that copy.",
                ) from error  # fmt: skip
            raise self._bad("the document has no pages, is damaged, or is no PDF") from error

    def _bad(self, what: str) -> BadInput:
        return BadInput(what, where=self._file.name, remedy="Export it again, or give all of it.")


class PicturePages:
    """A scan or photograph of one page, upright by its EXIF. Raises: BadInput, TooLarge."""

    count = 1

    def __init__(self, file: MediaFile, limits: MediaLimits) -> None:
        self._file = file
        self._limits = limits

    def pages(self, *, draw_all: bool, draw_untexted: bool) -> Iterator[Page]:
        pixels = self._pixels()
        drawn = pixels if draw_all or draw_untexted else None
        yield Page(1, pixels.shape[0] / pixels.shape[1], (), 0, False, drawn)

    def _pixels(self) -> npt.NDArray[np.uint8]:
        where = f"{self._file.name}, page 1"
        try:
            with self._file.view() as view, warnings.catch_warnings():
                warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # bounded below
                picture = Image.open(view, formats=PICTURE_FORMATS)
                _check_picture(picture, where)
                picture.draft("RGB", _fitting(picture.width, picture.height, self._limits))
                upright = ImageOps.exif_transpose(picture).convert("RGB")
        except Image.DecompressionBombError as error:
            raise _too_many_pixels(where) from error
        except (OSError, ValueError, SyntaxError, EOFError, IndexError) as error:
            raise BadInput(
                "the picture of a page is damaged, cut short, or no JPEG or PNG", where=where,
                remedy="Scan it again, or give the whole file.",
            ) from error  # fmt: skip
        upright.thumbnail(_fitting(upright.width, upright.height, self._limits))
        return np.ascontiguousarray(np.asarray(upright, dtype=np.uint8)[:, :, ::-1])


def open_pages(file: MediaFile, limits: MediaLimits) -> PdfPages | PicturePages:
    """Raises: Unsupported, TooLarge, BadInput."""
    if file.size_bytes > limits.document_bytes:
        raise TooLarge(
            f"the document has {file.size_bytes} bytes, more than {limits.document_bytes}",
            where=file.name, remedy="Split it, or raise the limit.",
        )  # fmt: skip
    head = file.head(1024)  # readers accept a header anywhere in there
    if b"%PDF-" in head:
        return PdfPages(file, limits)
    if head.startswith((b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")):
        return PicturePages(file, limits)
    raise Unsupported(
        "the file is no document that is read here", where=file.name,
        remedy="Give PDF, or a JPEG or PNG of one page.",
    )  # fmt: skip


def _check_size(width: float, height: float, limits: MediaLimits, where: str) -> None:
    if not (math.isfinite(width) and math.isfinite(height) and width >= 1 and height >= 1):
        raise BadInput("a page has no area", where=where, remedy="Export the document again.")
    if max(width, height) > limits.page_side_points:
        raise TooLarge(
            f"a page of {width:.0f} x {height:.0f} points, more than "
            f"{limits.page_side_points:.0f} a side", where=where,
            remedy="Export it on pages of an ordinary size.",
        )  # fmt: skip


def _draw(
    page: pdfium.PdfPage, width: float, height: float, limits: MediaLimits
) -> npt.NDArray[np.uint8]:
    scale = min(
        RENDER_DPI / POINTS_PER_INCH, math.sqrt(limits.page_pixels / (width * height)),
        _MAX_SIDE_PX / max(width, height),
    )  # fmt: skip
    bitmap = page.render(scale=scale, may_draw_forms=False, force_bitmap_format=_BGR)
    with contextlib.closing(bitmap):
        return np.array(bitmap.to_numpy(), dtype=np.uint8, copy=True)


def _text_layer(
    page: pdfium.PdfPage, width: float, height: float, most: int, where: str
) -> tuple[tuple[TextLine, ...], int]:
    """Its lines, and the quarter turns counterclockwise that make most of them upright."""
    lines = []
    left0, bottom0 = page.get_bbox()[:2]
    turns = page.get_rotation() // 90
    with contextlib.closing(page.get_textpage()) as layer:
        count = layer.count_rects()
        if count > most * 4:  # several a line
            raise TooLarge(
                f"a page has {count} pieces of text, more than {most * 4}", where=where,
                remedy="Split it, or raise the limit.",
            )  # fmt: skip
        for at in range(count):
            left, bottom, right, top = layer.get_rect(at)
            text = _plain(layer.get_text_bounded(left, bottom, right, top))
            if text:
                corners = (left - left0, bottom - bottom0, right - left0, top - bottom0)
                lines.append(TextLine(_on_page(corners, width, height, turns), text))
        upright = (turns + _direction(layer)) % 4 if lines else 0
    return tuple(lines), upright


def _direction(layer: pdfium.PdfTextPage) -> int:
    """Of most characters, in quarter turns clockwise, before the page's own /Rotate."""
    count = layer.count_chars()
    some = range(0, count, max(1, count // _ASKED))
    angles = (pdfium.raw.FPDFText_GetCharAngle(layer, at) for at in some)
    turns = Counter(round(angle / (math.pi / 2)) % 4 for angle in angles if angle >= 0)
    return turns.most_common(1)[0][0] if turns else 0


def _on_page(
    corners: tuple[float, float, float, float], width: float, height: float, turns: int
) -> Box:
    """From points above the lower left corner, before the page's own /Rotate, to a box on it."""
    if turns % 2:
        width, height = height, width
    left, bottom, right, top = corners
    box = Box(left / width, 1 - top / height, right / width, 1 - bottom / height)
    box = turn_back(box, turns)  # /Rotate is clockwise
    clip = [min(1.0, max(0.0, value)) for value in (box.left, box.top, box.right, box.bottom)]
    return Box(*clip)


def _plain(text: str) -> str:
    """In one line, NFC, without control characters."""
    normal = unicodedata.normalize("NFC", text)
    spaced = "".join(" " if unicodedata.category(char) == "Cc" else char for char in normal)
    return " ".join(spaced.split())


def _readable(lines: tuple[TextLine, ...]) -> bool:
    """Fonts without a map to characters give private or undefined ones."""
    text = "".join(line.text for line in lines)
    poor = sum(
        char == "\ufffd" or unicodedata.category(char) in ("Co", "Cn", "Cs") for char in text
    )
    return poor <= (1 - _READABLE_SHARE) * len(text)


def _check_picture(picture: Image.Image, where: str) -> None:
    if picture.width * picture.height > MAX_PICTURE_PIXELS:
        raise _too_many_pixels(where)


def _too_many_pixels(where: str) -> TooLarge:
    return TooLarge(
        f"the picture of a page has more than {MAX_PICTURE_PIXELS} pixels",
        where=where, remedy="Scan it at 150 to 300 dots an inch.",
    )  # fmt: skip


def _fitting(width: int, height: int, limits: MediaLimits) -> tuple[int, int]:
    scale = min(1.0, math.sqrt(limits.page_pixels / (width * height)))
    return max(1, int(width * scale)), max(1, int(height * scale))


@contextmanager
def _explained(where: str) -> Iterator[None]:
    try:
        yield
    except (pdfium.PdfiumError, ValueError, MemoryError, OverflowError) as error:
        raise BadInput(
            f"the page cannot be read ({type(error).__name__})", where=where,
            remedy="Export the document again.",
        ) from error  # fmt: skip
