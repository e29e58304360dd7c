"""What only the folder store promises: permissions, full disks, leftovers, links."""

from __future__ import annotations

import os
import resource
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from infra import files
from infra.objects.folder import FolderStore
from validators.contracts.digest import digest_bytes, hex_of
from validators.contracts.errors import Refused, TooLarge, Unavailable

MIB = 1 << 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def every_path(root: Path) -> list[Path]:
    return [root, *root.rglob("*")]


def test_everything_in_it_is_for_its_owner_alone(root: Path) -> None:
    mask = os.umask(0)
    try:
        store = FolderStore(root)
        store.set_reference("a/b", store.put(b"secret"), expected=None)
    finally:
        os.umask(mask)
    for path in every_path(root):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path


def test_objects_lie_where_the_layout_says(root: Path) -> None:
    store = FolderStore(root)
    digest = store.put(b"here")
    name = hex_of(digest)
    assert (root / "objects" / name[:2] / name).read_bytes() == b"here"
    store.set_reference("services/shop", digest, expected=None)
    assert (root / "references" / "services!shop").read_text() == digest


def test_leftovers_of_the_dead_are_removed_and_those_of_the_living_stay(root: Path) -> None:
    FolderStore(root)
    staging = root / "staging"
    (staging / ".dead.1-00.part").write_bytes(b"half")
    with files.stage(staging, "living") as staged:
        staged.write(b"half")
        FolderStore(root)
        assert list(staging.iterdir()) == [staged.path]
    assert list(staging.iterdir()) == []


def test_a_link_in_an_objects_place_is_refused(root: Path, tmp_path: Path) -> None:
    store = FolderStore(root)
    digest = store.put(b"real")
    (tmp_path / "elsewhere").write_bytes(b"real")
    place = root / "objects" / hex_of(digest)[:2] / hex_of(digest)
    place.unlink()
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="symbolic link"):
        store.get(digest)


def test_a_reference_that_holds_no_digest_is_refused(root: Path) -> None:
    store = FolderStore(root)
    (root / "references" / "broken").write_bytes(b"\xff nonsense")
    with pytest.raises(Refused, match="set it again"):
        store.reference("broken")


def test_an_object_too_large_for_memory_is_not_read_at_once(root: Path) -> None:
    store = FolderStore(root)
    digest = store.put(b"")
    with (root / "objects" / hex_of(digest)[:2] / hex_of(digest)).open("r+b") as stream:
        stream.truncate((1 << 30) + 1)
    with pytest.raises(TooLarge, match="Fetch it to a file"):
        store.get(digest)


def test_files_of_other_kinds_are_no_objects(root: Path) -> None:
    store = FolderStore(root)
    digest = store.put(b"one")
    (root / "objects" / hex_of(digest)[:2] / "notes.txt").write_text("not ours")
    assert list(store.objects()) == [digest]


def test_a_root_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unavailable):
        FolderStore(tmp_path / "file" / "store")


def test_a_full_disk_is_unavailable_and_leaves_nothing_partial(
    tiny_disk: Path, tmp_path: Path
) -> None:
    store = FolderStore(tiny_disk / "store")
    kept = store.put(b"small")
    source = tmp_path / "big"
    source.write_bytes(secrets.token_bytes(4 * MIB))
    before = sorted(path for path in every_path(tiny_disk) if path.is_file())
    with pytest.raises(Unavailable, match="full"):
        store.put_file(source)
    with pytest.raises(Unavailable, match="Free space"):
        store.put(source.read_bytes())
    big = FolderStore(tmp_path / "other")
    with pytest.raises(Unavailable, match="full"):
        big.fetch(big.put_file(source), tiny_disk / "copy")
    assert sorted(path for path in every_path(tiny_disk) if path.is_file()) == before
    assert store.get(kept) == b"small"
    assert store.get(store.put(b"there is room again")) == b"there is room again"


_LIMITED = """
import resource, signal, sys
from pathlib import Path
from infra.objects.folder import FolderStore
from validators.contracts.errors import Unavailable
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    FolderStore(Path(sys.argv[1])).put_file(Path(sys.argv[2]))
except Unavailable as error:
    print(error.what)
"""


def test_a_limit_on_file_size_is_a_full_disk(root: Path, tmp_path: Path) -> None:
    source = tmp_path / "big"
    source.write_bytes(secrets.token_bytes(4 * MIB))
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(root), str(source)],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    assert "full" in done.stdout
    assert [path for path in every_path(root) if path.is_file()] == []


def test_descriptors_are_all_given_back(root: Path, tmp_path: Path) -> None:
    store = FolderStore(root)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    for number in range(min(soft, 1024) + 50):
        store.contains(digest_bytes(str(number).encode()))
    opened = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(30):
        digest = store.put(str(number).encode())
        store.fetch(digest, tmp_path / "out")
        store.set_reference(f"r/{number}", digest, expected=None)
    assert len(list(Path("/proc/self/fd").iterdir())) == opened
