"""Checks judge without using anything up; explanations say why, after the fact."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.cli.drift_tables import show_look
from flows.drift_watch.check import check
from flows.drift_watch.explain import explain_service, explain_window
from tests.flows.drift_watch.shop import Shop
from tests.services.gateway.toy import SERVICE
from validators.contracts.digest import plain, short
from validators.contracts.errors import BadInput, NotFound, Undecided
from validators.contracts.verdict import Outcome


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_a_check_judges_what_a_watch_has_judged_and_leaves_it_alone(shop: Shop) -> None:
    shop.record(shop.draw(60))
    shop.look()
    shop.record(shop.draw(60, shift=2))
    for _ in range(2):
        made = check(shop.watched())
        assert (made.rows, made.outcome) == (120, Outcome.FAIL)
    assert [item.rows for item in shop.look().looks] == [60]


@pytest.mark.parametrize("others", [0, 1])
def test_a_check_names_a_damaged_window_and_leaves_it_for_the_watch_to_count(
    shop: Shop, others: int
) -> None:
    digest = shop.record(shop.draw(60))
    folder = shop.workspace.home.folder("windows", SERVICE)
    (path,) = folder.rglob("*.window")
    path.write_bytes(path.read_bytes()[:100])
    for _ in range(others):
        shop.record(shop.draw(60))
    before = sorted(folder.rglob("*"))
    for _ in range(2):
        if others:
            findings = check(shop.watched()).findings
        else:
            with pytest.raises(Undecided) as caught:
                check(shop.watched())
            findings = caught.value.attachment["findings"]
        (finding,) = findings
        assert (finding.code, finding.subject) == ("window-unusable", f"window {short(digest)}")
        assert sorted(folder.rglob("*")) == before
    assert shop.look().state.windows_damaged == 1
    assert not path.exists()
    assert path.with_name(path.name + ".damaged").exists()
    assert shop.look().state.windows_damaged == 1, "it is counted once"


def test_a_check_prints_the_damaged_window(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    digest = shop.record(shop.draw(60))
    (path,) = shop.workspace.home.folder("windows", SERVICE).rglob("*.window")
    path.write_bytes(b"")
    shop.record(shop.draw(60))
    show_look(dict(plain(check(shop.watched())).items()))  # type: ignore[attr-defined]
    assert short(digest) in capsys.readouterr().out


def test_a_check_looks_back_so_far_and_no_further(shop: Shop) -> None:
    shop.record(shop.draw(60))
    shop.clock.advance(25 * 3600)
    with pytest.raises(Undecided) as caught:
        check(shop.watched())
    assert "record a larger share" in caught.value.remedy
    assert check(shop.watched(), hours=48).rows == 60


def test_the_latest_window_is_explained_or_any_by_its_first_digits(shop: Shop) -> None:
    windows = []
    for shift in (0, 2):
        shop.record(shop.draw(60, shift=shift))
        windows += [made.window for made in shop.look().looks]
    document = explain_service(shop.workspace, SERVICE)
    assert document["look"].window == windows[1]
    assert document["history"] == ["PASS", "FAIL"]
    assert [item.window for item in document["judged"]] == windows[::-1]
    sentences = [text for item in document["look"].explanations for text in item.sentences]
    assert any(text.startswith("image.brightness went up: its median") for text in sentences)
    assert not any("rows" in text.split(".")[0] for text in sentences if text.startswith("Look at"))
    first = explain_window(shop.workspace, SERVICE, short(windows[0]))
    assert first["look"].outcome is Outcome.PASS


@pytest.mark.parametrize(("window", "error"), [
    ("abc", BadInput), ("sha256:", BadInput), ("f" * 64, NotFound), ("../../state", NotFound),
])  # fmt: skip
def test_a_window_that_was_not_judged_is_not_found(
    shop: Shop, window: str, error: type[Exception]
) -> None:
    shop.record(shop.draw(60))
    shop.look()
    with pytest.raises(error):
        explain_window(shop.workspace, SERVICE, window)


def test_a_service_that_nobody_looked_at_is_said_so(shop: Shop) -> None:
    with pytest.raises(NotFound, match="no watch has looked"):
        explain_service(shop.workspace, SERVICE)
