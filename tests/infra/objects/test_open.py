from __future__ import annotations

from pathlib import Path

import pytest

from infra.objects.folder import FolderStore
from infra.objects.open import open_store
from infra.objects.s3 import S3Store
from validators.contracts.errors import BadInput


def test_a_file_url_opens_a_folder_store(tmp_path: Path) -> None:
    root = tmp_path / "with space"
    store = open_store(root.as_uri())
    assert isinstance(store, FolderStore)
    assert store.url == root.as_uri()
    assert (root / "objects").is_dir()


def test_an_s3_url_opens_an_s3_store_without_sending_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MODALGATE_S3_ENDPOINT", "http://127.0.0.1:9")
    store = open_store("s3://bucket/some/prefix/")
    assert isinstance(store, S3Store)
    assert store.url == "s3://bucket/some/prefix/"


@pytest.mark.parametrize(
    "url", ["", "/just/a/path", "ftp://host/x", "file://elsewhere/x", "file:", "s3://", "s3:///x",
            "s3://key:secret@bucket/x"],
)  # fmt: skip
def test_any_other_url_is_the_callers_mistake(url: str) -> None:
    with pytest.raises(BadInput, match="file:///folder or s3://bucket/prefix") as caught:
        open_store(url)
    assert "secret" not in str(caught.value)
