"""What only the S3 store promises: credentials, buckets, broken connections, leftovers."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.objects.s3 import S3Store
from infra.objects.s3_upload import MAX_PARTS, PART_BYTES, part_bytes
from tests.infra.manual_clock import ManualClock
from tests.infra.objects.conftest import BUCKET
from tests.infra.seaweed import Seaweed
from validators.contracts.digest import digest_bytes, hex_of
from validators.contracts.errors import BadInput, Conflict, NotFound, Unavailable

MIB = 1 << 20
A, B = digest_bytes(b"a"), digest_bytes(b"b")


@pytest.fixture
def store(seaweed: Seaweed, s3_environment: dict[str, str]) -> S3Store:
    return S3Store(BUCKET, secrets.token_hex(8), endpoint_url=seaweed.endpoint)


def test_prefixes_keep_stores_apart(seaweed: Seaweed, s3_environment: dict[str, str]) -> None:
    one = S3Store(BUCKET, "apart/one/", endpoint_url=seaweed.endpoint)
    other = S3Store(BUCKET, "/apart/other", endpoint_url=seaweed.endpoint)
    digest = one.put(b"mine")
    assert not other.contains(digest)
    assert list(other.objects()) == []


def test_a_missing_bucket_is_named(seaweed: Seaweed, s3_environment: dict[str, str]) -> None:
    store = S3Store("no-such-bucket", endpoint_url=seaweed.endpoint)
    calls = [
        lambda: store.get(A),
        lambda: store.contains(A),
        lambda: store.reference("a"),
        lambda: list(store.objects()),
    ]
    for call in calls:
        with pytest.raises(Unavailable, match="bucket"):
            call()


def test_wrong_credentials_say_which_variables_to_set(
    seaweed: Seaweed, s3_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-and-never-shown")
    store = S3Store(BUCKET, "x", endpoint_url=seaweed.endpoint)
    with pytest.raises(Unavailable, match="AWS_ACCESS_KEY_ID") as caught:
        store.put(b"data")
    assert "never-shown" not in str(caught.value)


def test_no_credentials_say_which_variables_to_set(
    seaweed: Seaweed,
    s3_environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    with pytest.raises(Unavailable, match="no credentials"):
        S3Store(BUCKET, "x", endpoint_url=seaweed.endpoint).put(b"data")


def test_files_of_others_under_the_prefix_are_no_objects(store: S3Store, seaweed: Seaweed) -> None:
    digest = store.put(b"mine")
    prefix = store.url.split("/")[3]
    seaweed.client().put_object(Bucket=BUCKET, Key=f"{prefix}/objects/notes.txt", Body=b"theirs")
    assert list(store.objects()) == [digest]


def test_a_server_that_keeps_no_checksums_is_read_instead(store: S3Store, seaweed: Seaweed) -> None:
    data = secrets.token_bytes(1000)
    key = f"{store.url.split('/')[3]}/objects/{hex_of(digest_bytes(data))}"
    seaweed.client().put_object(Bucket=BUCKET, Key=key, Body=data)
    written = seaweed.client().head_object(Bucket=BUCKET, Key=key)["LastModified"]
    assert store.get(store.put(data)) == data
    assert seaweed.client().head_object(Bucket=BUCKET, Key=key)["LastModified"] == written


def test_a_writer_that_never_wins_is_told_to_try_again(store: S3Store) -> None:
    def lose(**_: object) -> None:
        raise ClientError({"Error": {"Code": "ConditionalRequestConflict"}}, "PutObject")

    store._client.meta.events.register("before-call.s3.PutObject", lose)
    with pytest.raises(Unavailable, match="other writer"):
        store.put(b"data")
    with pytest.raises(Conflict):
        store.set_reference("services/shop", A, expected=None)


def test_an_endpoint_that_nobody_listens_on_is_unavailable(
    s3_environment: dict[str, str],
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(Unavailable, match="MODALGATE_S3_ENDPOINT"):
            S3Store(BUCKET, endpoint_url=endpoint).put(b"data")


def test_an_endpoint_that_is_no_url_is_the_callers_mistake(
    s3_environment: dict[str, str],
) -> None:
    with pytest.raises(BadInput):
        S3Store(BUCKET, endpoint_url="not a url")


def test_a_failed_upload_in_parts_is_ended(store: S3Store, tmp_path: Path) -> None:
    def fail(params: dict[str, Any], **_: object) -> None:
        if "partNumber=2" in params["url"]:
            raise ClientError({"Error": {"Code": "InternalError"}}, "UploadPart")

    store._client.meta.events.register("before-call.s3.UploadPart", fail)
    with pytest.raises(Unavailable, match="InternalError"):
        store.put(secrets.token_bytes(2 * PART_BYTES))
    assert list(store.objects()) == []
    assert store.abandon_uploads(-3600, ManualClock(wall_ns=2**62)) == 0


def test_leftover_uploads_are_ended_once_they_are_old(store: S3Store, seaweed: Seaweed) -> None:
    key = f"{store.url.split('/')[3]}/objects/{'0' * 64}"
    client = seaweed.client()
    client.create_multipart_upload(Bucket=BUCKET, Key=key)
    begun = client.list_multipart_uploads(Bucket=BUCKET, Prefix=key)["Uploads"][0]["Initiated"]
    clock = ManualClock(wall_ns=int(begun.timestamp() * 1e9))
    clock.advance(3600)
    assert store.abandon_uploads(7200, clock) == 0
    assert store.abandon_uploads(1800, clock) == 1
    assert store.abandon_uploads(1800, clock) == 0


def test_a_file_that_changes_while_it_is_stored_is_refused(
    store: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in (100, PART_BYTES + 1):
        with pytest.raises(BadInput, match="changed"):
            store._store(BytesIO(b"x" * size), A, size)
    assert list(store.objects()) == []


def test_a_lost_answer_is_not_a_lost_race(store: S3Store) -> None:
    """The write arrives, its answer does not, the client sends it again and meets itself."""
    lost: list[bool] = []

    def lose(**_: object) -> None:
        if not lost:
            lost.append(True)
            code = {"Error": {"Code": "PreconditionFailed"}}
            raise ClientError(code, "PutObject")  # type: ignore[arg-type]

    store._client.meta.events.register("after-call.s3.PutObject", lose)
    store.set_reference("services/shop", A, expected=None)
    assert lost == [True]
    assert store.reference("services/shop") == A
    with pytest.raises(Conflict):
        store.set_reference("services/shop", B, expected=None)


def test_a_dropped_connection_is_resumed_where_it_broke(
    seaweed: Seaweed, s3_environment: dict[str, str], tmp_path: Path
) -> None:
    data = secrets.token_bytes(12 * MIB)
    prefix = secrets.token_hex(8)
    digest = S3Store(BUCKET, prefix, endpoint_url=seaweed.endpoint).put(data)
    with _Unreliable(seaweed.endpoint, cut_after=2 * MIB, cuts=2) as proxy:
        store = S3Store(BUCKET, prefix, endpoint_url=proxy.endpoint)
        assert store.get(digest) == data
        assert proxy.cuts_left == 0
        proxy.cuts_left = 100
        with pytest.raises(Unavailable):
            store.fetch(digest, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [1, PART_BYTES, 10**9, 5 * 10**12])
def test_every_object_that_s3_takes_fits_in_its_number_of_parts(size: int) -> None:
    assert -(-size // part_bytes(size)) <= MAX_PARTS


def test_an_object_that_vanished_is_not_found_even_under_an_open_store(store: S3Store) -> None:
    digest = store.put(b"brief")
    store.delete(digest)
    with pytest.raises(NotFound):
        store.open(digest)


class _Unreliable:
    """A proxy that cuts its first `cuts` long answers after `cut_after` bytes."""

    def __init__(self, endpoint: str, *, cut_after: int, cuts: int) -> None:
        self._target = ("127.0.0.1", int(endpoint.rsplit(":", 1)[1]))
        self._cut_after = cut_after
        self.cuts_left = cuts
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> _Unreliable:
        self._run(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for item in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for item in (self._listener, *self._sockets):
            item.close()

    def _run(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._sockets += [client, server]
                self._run(self._pump, client, server, False)
                self._run(self._pump, server, client, True)

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
                passed += len(data)
                if answers and self.cuts_left > 0 and passed >= self._cut_after:
                    self.cuts_left -= 1
                    break
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
