from __future__ import annotations

import base64
import dataclasses
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from infra.keys.file import ALGORITHM, FileSigner, TrustedKeys, open_verifier
from validators.contracts.digest import require_digest
from validators.contracts.errors import NotFound, Refused, Unavailable
from validators.contracts.ports import Signature, Signer, Verifier

_PORTS: tuple[type[Signer], type[Verifier]] = (FileSigner, TrustedKeys)

PAYLOAD = b"the sealed manifest"


@pytest.fixture
def signer(tmp_path: Path) -> FileSigner:
    return FileSigner.create_or_open(tmp_path / "keys" / "signing.pem")


@pytest.fixture
def trusted(signer: FileSigner, tmp_path: Path) -> TrustedKeys:
    signer.publish(tmp_path / "trusted")
    return open_verifier(tmp_path / "trusted")


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "signing.pem"
    first = FileSigner.create_or_open(path)
    assert FileSigner.create_or_open(path).key_id == first.key_id
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [item.name for item in path.parent.iterdir()] == ["signing.pem"]
    assert require_digest(first.key_id)


def test_what_a_trusted_key_signed_is_verified(signer: FileSigner, trusted: TrustedKeys) -> None:
    signature = signer.sign(PAYLOAD)
    assert signature.algorithm == "Ed25519"
    assert trusted.key_ids == {signer.key_id}
    trusted.verify(PAYLOAD, signature)


def test_one_public_key_file_is_a_verifier_too(signer: FileSigner, tmp_path: Path) -> None:
    path = signer.publish(tmp_path / "trusted")
    assert signer.publish(tmp_path / "trusted") == path
    open_verifier(path).verify(PAYLOAD, signer.sign(PAYLOAD))


def test_of_several_trusted_keys_each_verifies_its_own(tmp_path: Path) -> None:
    signers = [FileSigner.create_or_open(tmp_path / f"{name}.pem") for name in "ab"]
    for item in signers:
        item.publish(tmp_path / "trusted")
    verifier = open_verifier(tmp_path / "trusted")
    for item in signers:
        verifier.verify(PAYLOAD, item.sign(PAYLOAD))
    borrowed = dataclasses.replace(signers[0].sign(PAYLOAD), key_id=signers[1].key_id)
    with pytest.raises(Refused, match="not over these bytes"):
        verifier.verify(PAYLOAD, borrowed)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"key_id": "sha256:" + "0" * 64}, "not among the trusted"),
        ({"key_id": ""}, "not among the trusted"),
        ({"algorithm": "none"}, "not Ed25519"),
        ({"algorithm": "ed25519"}, "not Ed25519"),
        ({"value": ""}, "not over these bytes"),
        ({"value": "not base64!"}, "not over these bytes"),
        ({"value": "ä"}, "not over these bytes"),
        ({"value": base64.b64encode(b"short").decode()}, "not over these bytes"),
    ],
)
def test_a_changed_signature_is_refused_with_its_reason(
    signer: FileSigner, trusted: TrustedKeys, change: dict[str, str], reason: str
) -> None:
    with pytest.raises(Refused, match=reason):
        trusted.verify(PAYLOAD, dataclasses.replace(signer.sign(PAYLOAD), **change))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[FileSigner, TrustedKeys]:
    folder = tmp_path_factory.mktemp("pair")
    signer = FileSigner.create_or_open(folder / "key.pem")
    return signer, open_verifier(signer.publish(folder / "trusted"))


@given(data=st.binary(max_size=200), bit=st.integers(0, 1599), where=st.booleans())
def test_no_flipped_bit_goes_unnoticed(
    pair: tuple[FileSigner, TrustedKeys], data: bytes, bit: int, where: bool
) -> None:
    signer, trusted = pair
    signature = signer.sign(data)
    trusted.verify(data, signature)
    raw = base64.b64decode(signature.value)
    target = bytearray(raw if where or not data else data)
    target[(bit // 8) % len(target)] ^= 1 << (bit % 8)
    with pytest.raises(Refused):
        if where or not data:
            forged = base64.b64encode(target).decode()
            trusted.verify(data, Signature(signature.key_id, ALGORITHM, forged))
        else:
            trusted.verify(bytes(target), signature)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_private_key_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key.pem"
    FileSigner.create_or_open(path)
    path.chmod(mode)
    with pytest.raises(Refused, match="chmod 600"):
        FileSigner.create_or_open(path)


def test_a_trusted_key_that_others_can_change_is_refused(
    signer: FileSigner, tmp_path: Path
) -> None:
    path = signer.publish(tmp_path / "trusted")
    path.chmod(0o622)
    with pytest.raises(Refused, match="chmod go-w"):
        open_verifier(path)
    path.chmod(0o644)
    path.parent.chmod(0o777)
    with pytest.raises(Refused, match="chmod go-w"):
        open_verifier(path.parent)
    path.parent.chmod(0o755)
    assert open_verifier(path.parent).key_ids == {signer.key_id}


def rsa_pem() -> bytes:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"garbage", rsa_pem(), b"x" * 20_000):
        path = tmp_path / "key.pem"
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(Refused, match="Ed25519"):
            FileSigner.open(path)
        with pytest.raises(Refused, match="Ed25519"):
            open_verifier(path)


def test_a_private_key_is_no_trusted_key(signer: FileSigner, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="public"):
        open_verifier(tmp_path / "keys")


def test_a_link_is_no_key(signer: FileSigner, tmp_path: Path) -> None:
    (tmp_path / "link.pem").symlink_to(tmp_path / "keys" / "signing.pem")
    with pytest.raises(Refused, match="symbolic link"):
        FileSigner.open(tmp_path / "link.pem")


def test_what_is_missing_is_not_found_and_an_empty_folder_trusts_nobody(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        FileSigner.open(tmp_path / "nothing")
    with pytest.raises(NotFound):
        open_verifier(tmp_path / "nothing")
    with pytest.raises(Refused, match="0 trusted keys"):
        open_verifier(tmp_path)


def test_a_place_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Unavailable):
        FileSigner.create_or_open(tmp_path / "file" / "key.pem")


def test_threads_that_race_get_one_key(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    with ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: FileSigner.create_or_open(path).key_id, range(8)))
    assert len(made) == 1


_RACER = """
import sys
from pathlib import Path
from infra.keys.file import FileSigner
print("ready", flush=True)
sys.stdin.readline()
print(FileSigner.create_or_open(Path(sys.argv[1])).key_id)
"""


def test_processes_that_race_get_one_key(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACER, str(tmp_path / "keys" / "key.pem")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    assert len({racer.communicate()[0] for racer in racers}) == 1
    assert [item.name for item in (tmp_path / "keys").iterdir()] == ["key.pem"]
