from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.registry import evidence as module
from infra.registry.evidence import manifest_of, read_files, write_files
from validators.contracts.digest import digest_bytes
from validators.contracts.errors import BadInput, Refused, TooLarge

FILES = {"parity-image.json": b"{}", "drift/report.html": b"<p>", "empty": b""}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    digest = digest_bytes(write_files(FILES, tmp_path).document())
    assert read_files(tmp_path, digest, "shop 1") == FILES


def test_no_evidence_is_evidence_of_nothing(tmp_path: Path) -> None:
    digest = digest_bytes(write_files({}, tmp_path).document())
    assert read_files(tmp_path, digest, "shop 1") == {}


@pytest.mark.parametrize("name", ["evidence/empty", "evidence/drift/report.html", "evidence.json"])
@pytest.mark.parametrize("harm", ["changed", "lost"])
def test_a_changed_or_lost_file_is_named(tmp_path: Path, name: str, harm: str) -> None:
    digest = digest_bytes(write_files(FILES, tmp_path).document())
    if harm == "changed":
        (tmp_path / name).write_bytes(b"other")
    else:
        (tmp_path / name).unlink()
    with pytest.raises(Refused, match=name.removeprefix("evidence/")):
        read_files(tmp_path, digest, "shop 1")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../up", "/root", "a//b", "a/", ".hidden", "a/../b", "a b", "a\n", "ä",
             "x" * 101, "a/b/c/d/e/f", "a%2e"],
)  # fmt: skip
def test_a_name_that_could_leave_the_folder_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        manifest_of({name: b""})


def test_a_name_cannot_be_a_file_and_a_folder() -> None:
    with pytest.raises(BadInput):
        manifest_of({"a": b"", "a/b": b""})


def test_too_much_evidence_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TOTAL_BYTES", 10)
    assert manifest_of({"a": b"x" * 10})
    with pytest.raises(TooLarge):
        manifest_of({"a": b"x" * 10, "b": b"x"})
    with pytest.raises(TooLarge):
        manifest_of({f"f{number}": b"" for number in range(module.MAX_FILES + 1)})


@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.binary(max_size=9)))
def test_a_manifest_does_not_depend_on_order(evidence: dict[str, bytes]) -> None:
    backwards = dict(reversed(evidence.items()))
    assert manifest_of(evidence).document() == manifest_of(backwards).document()
