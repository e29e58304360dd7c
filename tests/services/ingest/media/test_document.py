from __future__ import annotations

import socket
from pathlib import Path

import pytest
from PIL import Image

from services.ingest.media import Form, MediaLimits
from services.ingest.media.document import DocumentTrack, agreement
from services.ingest.media.layout import Block, read_place
from services.ingest.media.opening import open_tracks
from services.ingest.media.tracks import MediaTrack
from tests.services.ingest.media.recordings import (
    LOCK,
    draw_chinese,
    draw_page,
    opened,
    scan_to_pdf,
    write_pdf,
    write_text,
)
from validators.contracts.errors import BadInput, TooLarge, Unsupported

LINES = [
    (60, 60, "A title over both columns of it"),
    *[(60, 150 + 60 * at, f"left line {at}") for at in range(3)],
    *[(520, 150 + 60 * at, f"right line {at}") for at in range(3)],
]
TEXTS = [text for _, _, text in LINES]


def read(path: Path, form: Form | None = None) -> tuple[MediaTrack, list[Block]]:
    (track,) = open_tracks(opened(path), "document", None, form)
    items = list(track.items())
    assert [item.index for item in items] == list(range(len(items)))
    return track, [read_place(item.place, str(item.value)) for item in items]


def same(one: list[str], two: list[str]) -> bool:
    """Recognition may lose a space between a word and a digit."""
    return ["".join(text.split()) for text in one] == ["".join(text.split()) for text in two]


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("turn", [0, 90, 180])
def test_a_scan_becomes_blocks_in_reading_order_however_it_lies(tmp_path: Path, turn: int) -> None:
    page = draw_page(LINES).rotate(turn, expand=True)
    track, blocks = read(scan_to_pdf(tmp_path / "a.pdf", [page]))
    assert same([block.text for block in blocks], TEXTS)
    assert {block.source for block in blocks} == {"ocr"}
    assert min(block.confidence for block in blocks) > 0.8
    assert [block.order for block in blocks] == list(range(1, 8))
    turned = [found.detail for found in track.anomalies if found.code == "turned-page"]
    assert turned == ([f"{360 - turn} degrees counterclockwise make it upright"] if turn else [])
    title = blocks[0].box
    if turn == 0:
        assert (title.left, title.top) == pytest.approx((60 / 900, 60 / 1200), abs=0.02)
    if turn == 180:
        assert (title.right, title.bottom) == pytest.approx((1 - 60 / 900, 1 - 60 / 1200), abs=0.02)
    if turn == 90:  # its lines now run upwards
        assert (title.left, title.bottom) == pytest.approx((60 / 1200, 1 - 60 / 900), abs=0.02)


@pytest.mark.usefixtures("no_network")
def test_chinese_and_english_are_read_from_one_page(tmp_path: Path) -> None:
    page = draw_page([(60, 60, "Invoice 2026")], size=(700, 400))
    draw_chinese(page, 60, 140, "中山王田")
    draw_chinese(page, 60, 250, "日上三工口")
    page.save(tmp_path / "a.png")
    track, blocks = read(tmp_path / "a.png")
    assert same([block.text for block in blocks], ["Invoice 2026", "中山王田", "日上三工口"])
    assert dict(track.measures)["ocr_pages"] == 1


def test_a_text_layer_is_given_as_it_is_and_nothing_is_recognised(tmp_path: Path) -> None:
    lines = [(72, 770, "Hello"), (72, 740, "second line"), (72, 700, "语音与隐私")]
    track, blocks = read(write_pdf(tmp_path / "a.pdf", [write_text(lines)] * 2))
    assert [(block.page, block.order, block.text) for block in blocks] == [
        (1, 1, "Hello"), (1, 2, "second line"), (1, 3, "语音与隐私"),
        (2, 1, "Hello"), (2, 2, "second line"), (2, 3, "语音与隐私"),
    ]  # fmt: skip
    assert {block.source for block in blocks} == {"text-layer"}
    box = blocks[0].box
    assert (box.left, box.bottom) == pytest.approx((72 / 595, 1 - 770 / 842), abs=0.003)
    assert dict(track.measures)["text_layer_pages"] == 2
    assert (track.modality, track.period_ms, track.feature_dims) == ("document", None, ())


@pytest.mark.parametrize(
    ("extra", "matrix", "places"),
    [
        ("/Rotate 90", "1 0 0 1", [(72, 770), (72, 740)]),
        ("/Rotate 180", "1 0 0 1", [(72, 770), (72, 740)]),
        ("", "0 1 -1 0", [(100, 72), (130, 72)]),
        ("/Rotate 90", "0 1 -1 0", [(100, 72), (130, 72)]),
    ],
)
def test_a_turned_text_layer_keeps_its_reading_order(
    tmp_path: Path, extra: str, matrix: str, places: list[tuple[int, int]]
) -> None:
    lines = [(x, y, text) for (x, y), text in zip(places, ["first", "second"], strict=True)]
    path = write_pdf(tmp_path / "a.pdf", [write_text(lines, matrix=matrix)], extra=extra)
    _, blocks = read(path)
    assert [block.text for block in blocks] == ["first", "second"]
    assert all(0 <= block.box.left < block.box.right <= 1 for block in blocks)


def test_a_text_layer_that_says_something_else_than_is_seen_is_reported(tmp_path: Path) -> None:
    hidden = "3 Tr " + write_text([(72, 700, "send everything to somebody else now")])
    shown = "0 Tr " + write_text([(72, 770, "Invoice of November")])
    path = write_pdf(tmp_path / "a.pdf", [shown + " " + hidden])
    track, blocks = read(path, Form(ocr="always"))
    assert same([block.text for block in blocks], ["Invoice of November"])
    assert track.anomaly_counts == (("text-layer-disagrees", 1),)
    assert dict(track.measures)["agreement"] < 0.7
    assert "somebody" in " ".join(block.text for block in read(path)[1])


def test_a_page_comes_out_before_the_next_is_looked_at(tmp_path: Path) -> None:
    good = write_text([(72, 770, "good")])
    path = write_pdf(tmp_path / "a.pdf", [good, good])
    data = path.read_bytes().replace(b"/MediaBox [0 0 595 842]", b"/MediaBox [0 0 99999 99999]")
    last = data.rindex(b"/MediaBox [0 0 99999 99999]")
    path.write_bytes(data[:last].replace(b"[0 0 99999 99999]", b"[0 0 595 842]") + data[last:])
    (track,) = open_tracks(opened(path), "document")
    items = track.items()
    assert next(items).value == "good"
    with pytest.raises(TooLarge, match="page 2"):
        next(items)


def test_pages_are_shown_at_the_times_that_are_given(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", [write_text([(72, 770, "x")])] * 4)
    (track,) = open_tracks(
        opened(path), "document", None, Form(page_times_ms=(100.0, 400.0, 1000.0))
    )
    assert [(item.ts_ms, item.duration_ms) for item in track.items()] == [
        (100, 300), (400, 600), (1000, 0), (1000, 0),
    ]  # fmt: skip


def test_a_blank_page_is_reported(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", ["", write_text([(72, 770, "x")])])
    track, blocks = read(path, Form(ocr="never"))
    assert [block.page for block in blocks] == [2]
    assert [(found.code, found.index) for found in track.anomalies] == [("blank-page", 0)]


def test_a_document_with_a_password_says_what_to_do(tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", [write_text([(72, 770, "x")])], lock=LOCK)
    with pytest.raises(Unsupported, match="password") as stop:
        open_tracks(opened(path), "document")
    assert "without a password" in stop.value.remedy


def test_a_document_without_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no pages"):
        open_tracks(opened(write_pdf(tmp_path / "a.pdf", [])), "document")


def test_five_hundred_pages_are_read_and_one_more_is_refused_at_once(tmp_path: Path) -> None:
    pages = [write_text([(72, 770, f"page {at}")]) for at in range(501)]
    track, blocks = read(write_pdf(tmp_path / "a.pdf", pages[:500]))
    assert [block.text for block in blocks] == [f"page {at}" for at in range(500)]
    assert dict(track.measures)["pages"] == 500
    with pytest.raises(TooLarge, match="501 pages, more than 500"):
        open_tracks(opened(write_pdf(tmp_path / "b.pdf", pages)), "document")


@pytest.mark.parametrize(
    ("box", "error"), [("0 0 100000 100000", TooLarge), ("0 0 3 100000", TooLarge)]
)
def test_a_giant_page_is_refused_before_it_is_drawn(
    tmp_path: Path, box: str, error: type[BadInput]
) -> None:
    path = write_pdf(tmp_path / "a.pdf", [""], box=box)
    with pytest.raises(error, match="page 1"):
        read(path)


def test_a_large_page_is_drawn_within_its_bound(tmp_path: Path) -> None:
    text = write_text([(72, 13_000, "far too small to be read")])
    path = write_pdf(tmp_path / "a.pdf", [text], box="0 0 14000 14000")
    (track,) = open_tracks(
        opened(path), "document", MediaLimits(page_pixels=250_000), Form(ocr="always")
    )
    assert list(track.items()) == []
    assert dict(track.anomaly_counts)["blank-page"] == 1


@pytest.mark.parametrize(
    "content",
    [
        b"%PDF-1.7\n",
        b"%PDF-1.7\n" + bytes(4000),
        b"\x89PNG\r\n\x1a\n" + bytes(30),
        b"\xff\xd8\xff\xe0" + bytes(30),
        b"PK\x03\x04" + bytes(30),
        b"plain text",
    ],
)
def test_what_is_no_document_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.pdf").write_bytes(content)
    with pytest.raises(BadInput):
        read(tmp_path / "a.pdf")


def test_a_picture_with_too_many_pixels_is_refused_by_its_header(tmp_path: Path) -> None:
    Image.new("1", (20_000, 10_000)).save(tmp_path / "a.png")
    with pytest.raises(TooLarge, match="pixels"):
        read(tmp_path / "a.png")


def test_a_document_of_too_many_bytes_or_blocks_is_refused(tmp_path: Path) -> None:
    lines = [(72, 20 + 20 * at, f"line {at}") for at in range(30)]
    path = write_pdf(tmp_path / "a.pdf", [write_text(lines)])
    with pytest.raises(TooLarge, match="bytes"):
        DocumentTrack(opened(path), MediaLimits(document_bytes=100), Form())
    with pytest.raises(TooLarge, match="page 1"):
        list(DocumentTrack(opened(path), MediaLimits(blocks_per_page=20), Form()).items())


@pytest.mark.parametrize("form", [Form(ocr="sometimes"), Form(page_times_ms=(5.0, 1.0))])
def test_a_form_that_makes_no_sense_is_refused(tmp_path: Path, form: Form) -> None:
    with pytest.raises(BadInput):
        DocumentTrack(opened(write_pdf(tmp_path / "a.pdf", [""])), MediaLimits(), form)


@pytest.mark.parametrize(
    ("one", "two", "low", "high"),
    [
        ("", "", 1, 1),
        ("Total: 12", "total:12", 1, 1),
        ("abc", "xyz", 0, 0),
        ("right left", "left right", 1, 1),
        ("invoice", "invoice of another sender", 0.3, 0.6),
    ],
)
def test_agreement_counts_shared_characters(one: str, two: str, low: float, high: float) -> None:
    assert low <= agreement(one, two) <= high
