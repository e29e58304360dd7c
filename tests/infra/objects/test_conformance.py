"""What every object store must do, whatever it is made of."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra.objects.folder import FolderStore
from infra.objects.s3 import S3Store
from tests.infra.objects.conftest import Place
from validators.contracts.digest import Digest, digest_bytes
from validators.contracts.errors import (
    BadInput,
    Conflict,
    NotFound,
    Refused,
    Unavailable,
)
from validators.contracts.ports import ObjectStore

_PORT: tuple[type[ObjectStore], ...] = (FolderStore, S3Store)

MIB = 1 << 20
A, B, C = (digest_bytes(letter) for letter in (b"a", b"b", b"c"))


@pytest.mark.parametrize("size", [0, 1, MIB + 1, 17 * MIB + 3])
def test_what_was_put_is_got(store: ObjectStore, size: int) -> None:
    data = secrets.token_bytes(size)
    digest = store.put(data)
    assert digest == digest_bytes(data)
    assert store.get(digest) == data
    assert store.contains(digest)


@pytest.mark.parametrize("size", [0, 5, 33 * MIB + 7])
def test_a_file_goes_in_and_comes_out_whole(store: ObjectStore, tmp_path: Path, size: int) -> None:
    source, copy = tmp_path / "in", tmp_path / "deep" / "folder" / "out"
    source.write_bytes(secrets.token_bytes(size))
    digest = store.put_file(source)
    store.fetch(digest, copy)
    assert copy.read_bytes() == source.read_bytes()
    assert [path.name for path in copy.parent.iterdir()] == ["out"]
    assert copy.stat().st_mode & 0o777 == 0o600


def test_storing_the_same_again_changes_nothing(store: ObjectStore, tmp_path: Path) -> None:
    data = secrets.token_bytes(17 * MIB)
    (tmp_path / "same").write_bytes(data)
    assert store.put(data) == store.put(data) == store.put_file(tmp_path / "same")
    assert list(store.objects()) == [digest_bytes(data)]


def test_a_stream_reads_the_object_piece_by_piece(store: ObjectStore) -> None:
    data = secrets.token_bytes(3 * MIB)
    with store.open(store.put(data)) as stream:
        assert stream.read(10) == data[:10]
        assert stream.read() == data[10:]
        assert stream.read(1) == b""


def test_an_absent_object_is_not_found(store: ObjectStore, tmp_path: Path) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.get(A),
        lambda: store.open(A),
        lambda: store.fetch(A, tmp_path / "out"),
    ]
    for call in calls:
        with pytest.raises(NotFound):
            call()
    assert not store.contains(A)
    assert not (tmp_path / "out").exists()


def test_deleting_removes_and_deleting_again_does_nothing(store: ObjectStore) -> None:
    digest = store.put(b"short-lived")
    store.delete(digest)
    store.delete(digest)
    assert not store.contains(digest)
    assert list(store.objects()) == []


def test_all_objects_are_listed(store: ObjectStore) -> None:
    stored = {store.put(str(number).encode()) for number in range(20)}
    assert set(store.objects()) == stored


@pytest.mark.parametrize("size", [100, 17 * MIB])
@pytest.mark.parametrize("change", ["flipped", "cut"])
def test_a_damaged_object_is_refused_and_storing_it_again_heals_it(
    store: ObjectStore, place: Place, tmp_path: Path, size: int, change: str
) -> None:
    data = secrets.token_bytes(size)
    digest = store.put(data)
    place.overwrite(digest, data[:-1] + (bytes([data[-1] ^ 1]) if change == "flipped" else b""))
    with pytest.raises(Refused, match="Store the object again"):
        store.get(digest)
    with pytest.raises(Refused):
        store.fetch(digest, tmp_path / "out")
    assert list(tmp_path.glob("*out*")) == []
    store.put(data)
    assert store.get(digest) == data


@pytest.mark.parametrize(
    "text", ["", "sha256:", "sha256:" + "g" * 64, "../../etc/passwd", "a" * 64]
)
def test_what_is_not_a_digest_is_no_object(store: ObjectStore, text: str) -> None:
    with pytest.raises(BadInput):
        store.get(Digest(text))
    with pytest.raises(BadInput):
        store.set_reference("name", Digest(text), expected=None)


def test_a_missing_source_file_is_the_callers_mistake(store: ObjectStore, tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(NotFound):
            store.put_file(path)


def test_a_reference_moves_only_from_where_it_is_expected(store: ObjectStore) -> None:
    assert store.reference("services/shop") is None
    store.set_reference("services/shop", A, expected=None)
    with pytest.raises(Conflict):
        store.set_reference("services/shop", B, expected=None)
    with pytest.raises(Conflict):
        store.set_reference("services/shop", C, expected=B)
    store.set_reference("services/shop", B, expected=A)
    assert store.reference("services/shop") == B
    store.set_reference("services/shop", B, expected=B)
    store.delete_reference("services/shop")
    store.delete_reference("services/shop")
    assert store.reference("services/shop") is None
    with pytest.raises(Conflict):
        store.set_reference("services/shop", C, expected=B)


def test_references_are_listed_by_prefix(store: ObjectStore) -> None:
    for name in ("a", "a/b", "a/b:1", "ab", "z/sha256:0", "..a"):
        store.set_reference(name, A, expected=None)
    assert sorted(store.references()) == ["..a", "a", "a/b", "a/b:1", "ab", "z/sha256:0"]
    assert sorted(store.references("a/")) == ["a/b", "a/b:1"]
    assert list(store.references("nobody/")) == []


@pytest.mark.parametrize(
    "name",
    ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a\\b", "a b", "a\n", "ä", "a" * 201,
     "a\x00b", "a!b", "a%2Fb", "~"],
)  # fmt: skip
def test_a_name_that_could_leave_the_store_is_refused(store: ObjectStore, name: str) -> None:
    with pytest.raises(BadInput):
        store.set_reference(name, A, expected=None)
    with pytest.raises(BadInput):
        store.reference(name)
    with pytest.raises(BadInput):
        store.delete_reference(name)


@pytest.mark.parametrize("prefix", ["../", "a b", "a" * 201, "a\x00"])
def test_a_prefix_obeys_the_rules_of_names(store: ObjectStore, prefix: str) -> None:
    with pytest.raises(BadInput):
        list(store.references(prefix))


@pytest.mark.parametrize("start", [None, A])
def test_of_racing_threads_exactly_one_wins_a_reference(
    store: ObjectStore, start: Digest | None
) -> None:
    targets = [digest_bytes(bytes([number])) for number in range(8)]
    for round_number in range(5):
        name = f"race/{round_number}"
        if start is not None:
            store.set_reference(name, start, expected=None)

        def attempt(to: Digest, name: str = name) -> Digest | None:
            try:
                store.set_reference(name, to, expected=start)
            except Conflict:
                return None
            return to

        with ThreadPoolExecutor(len(targets)) as pool:
            won = [to for to in pool.map(attempt, targets) if to is not None]
        assert won == [store.reference(name)]


def test_threads_that_set_the_same_value_do_not_both_win(store: ObjectStore) -> None:
    def attempt(_: int) -> bool:
        try:
            store.set_reference("lease", A, expected=None)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1


_RACER = """
import sys
from infra.objects.open import open_store
from validators.contracts.digest import digest_bytes
from validators.contracts.errors import Conflict
store = open_store(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    try:
        store.set_reference(f"race/{number}", digest_bytes(sys.argv[2].encode()), expected=None)
        print(number, flush=True)
    except Conflict:
        pass
"""


def test_of_two_racing_processes_exactly_one_wins_each_reference(
    store: ObjectStore, place: Place, child_environment: dict[str, str]
) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACER, place.url, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_environment, text=True,
        )
        for name in ("one", "two")
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = [set(racer.communicate()[0].split()) for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0]
    assert not won[0] & won[1]
    assert won[0] | won[1] == {str(number) for number in range(20)}
    for number in range(20):
        winner = b"one" if str(number) in won[0] else b"two"
        assert store.reference(f"race/{number}") == digest_bytes(winner)


def test_threads_that_store_one_object_all_succeed(store: ObjectStore) -> None:
    data = secrets.token_bytes(2 * MIB)
    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(store.put, [data] * 6)) == {digest_bytes(data)}
    assert store.get(digest_bytes(data)) == data


_WRITER = """
import os, sys, time
from pathlib import Path
from infra.objects.open import open_store
store = open_store(sys.argv[1])
moment = sys.argv[3]

def stop(*args, **kwargs):
    print("there", flush=True)
    time.sleep(3600)

if moment == "part-2":
    def maybe(params, **_):
        if "partNumber=2" in params["url"]:
            stop()
    store._client.meta.events.register("before-call.s3.UploadPart", maybe)
elif moment == "complete":
    store._client.meta.events.register("before-call.s3.CompleteMultipartUpload", stop)
elif moment == "middle":
    write, calls = os.write, []
    def halt(handle, data):
        calls.append(1)
        if len(calls) == 9:
            stop()
        return write(handle, data)
    os.write = halt
elif moment == "flush":
    os.fsync = stop
elif moment == "rename":
    Path.replace = stop
elif moment == "renamed":
    replace = Path.replace
    def halt(self, to):
        replace(self, to)
        stop()
    Path.replace = halt
store.put_file(Path(sys.argv[2]))
"""


_MOMENTS = [
    *(("folder", moment) for moment in ("middle", "flush", "rename", "renamed")),
    *(("s3", moment) for moment in ("part-2", "complete")),
]


@pytest.mark.parametrize(("place", "moment"), _MOMENTS, indirect=["place"])
def test_a_writer_killed_in_the_middle_leaves_nothing_partial(
    place: Place, child_environment: dict[str, str], tmp_path: Path, moment: str
) -> None:
    source = tmp_path / "big"
    source.write_bytes(secrets.token_bytes(40 * MIB))
    digest = digest_bytes(source.read_bytes())
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, place.url, str(source), moment],
        stdout=subprocess.PIPE, env=child_environment, text=True,
    )  # fmt: skip
    assert writer.stdout is not None
    assert writer.stdout.readline() == "there\n"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()

    store = place.open()
    assert list(store.objects()) == ([digest] if moment == "renamed" else [])
    assert store.contains(digest) == (moment == "renamed")
    assert store.put_file(source) == digest
    assert digest_bytes(store.get(digest)) == digest
    if isinstance(store, FolderStore):
        assert list((tmp_path / "store" / "staging").iterdir()) == []


def test_a_store_that_went_away_is_unavailable_and_serves_again_when_it_is_back(
    store: ObjectStore, place: Place, tmp_path: Path
) -> None:
    digest = store.put(b"kept")
    store.set_reference("kept", digest, expected=None)
    (tmp_path / "file").write_bytes(b"new")
    calls: list[Callable[[], object]] = [
        lambda: store.put(b"new"),
        lambda: store.put_file(tmp_path / "file"),
        lambda: store.get(digest),
        lambda: store.fetch(digest, tmp_path / "out"),
        lambda: store.contains(digest),
        lambda: store.delete(digest),
        lambda: list(store.objects()),
        lambda: store.reference("kept"),
        lambda: store.set_reference("kept", A, expected=digest),
        lambda: store.delete_reference("kept"),
        lambda: list(store.references()),
    ]
    place.vanish()
    try:
        with ThreadPoolExecutor(len(calls)) as pool:
            for future in [pool.submit(call) for call in calls]:
                with pytest.raises(Unavailable) as caught:
                    future.result()
                assert caught.value.remedy
    finally:
        place.come_back()
    assert store.get(digest) == b"kept"
    assert store.reference("kept") == digest
    assert not store.contains(digest_bytes(b"new"))
    assert not (tmp_path / "out").exists()


_STREAMER = """
import resource, sys
from pathlib import Path
from infra.objects.open import open_store
store = open_store(sys.argv[1])
store.put(b"warm")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
digest = store.put_file(Path(sys.argv[2]))
store.fetch(digest, Path(sys.argv[3]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_a_hundred_megabytes_pass_through_little_memory(
    place: Place, child_environment: dict[str, str], tmp_path: Path
) -> None:
    source, copy = tmp_path / "in", tmp_path / "out"
    with source.open("wb") as stream:
        for _ in range(100):
            stream.write(secrets.token_bytes(MIB))
    done = subprocess.run(
        [sys.executable, "-c", _STREAMER, place.url, str(source), str(copy)],
        stdout=subprocess.PIPE, env=child_environment, text=True, check=True,
    )  # fmt: skip
    grown_bytes = int(done.stdout) * 1024
    assert grown_bytes < (64 if place.url.startswith("s3") else 16) * MIB
    assert copy.stat().st_size == 100 * MIB
