from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra import files
from infra.registry.chain import GENESIS, Head
from infra.registry.ledger import MAX_LINE_BYTES, FileLedger
from tests.infra.manual_clock import ManualClock
from validators.contracts.documents import load
from validators.contracts.errors import BadInput, Refused, TooLarge, Unavailable
from validators.contracts.ports import Ledger, LedgerEntry

_PORT: type[Ledger] = FileLedger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "registry" / "ledger.jsonl"


@pytest.fixture
def ledger(path: Path) -> FileLedger:
    return FileLedger(path, ManualClock(wall_ns=5_000_000_000))


def write(ledger: FileLedger, reason: str = "measured", model: str = "shop") -> LedgerEntry:
    return ledger.append(
        actor="ada", action="approve", model=model, version="1", reason=reason, details={"b": "x"}
    )


def test_entries_are_kept_in_order_with_their_time_and_chain(
    ledger: FileLedger, path: Path
) -> None:
    first, second = write(ledger), write(ledger, "Größe\nim zweiten Anlauf")
    assert [first.sequence, second.sequence] == [0, 1]
    assert (first.previous, second.previous) == (GENESIS, first.digest)
    assert first.at_ms == 5_000
    assert FileLedger(path, ManualClock()).entries() == [first, second]
    assert ledger.verify() == 2
    assert path.read_bytes().count(b"\n") == 2


def test_entries_of_one_model_are_found(ledger: FileLedger) -> None:
    write(ledger, model="shop")
    other = write(ledger, model="other")
    assert ledger.entries("other") == [other]
    assert ledger.entries("nobody") == []


def test_an_empty_ledger_holds(ledger: FileLedger) -> None:
    assert ledger.verify() == 0
    assert ledger.entries() == []


def test_it_is_for_its_owner_alone(ledger: FileLedger, path: Path) -> None:
    write(ledger)
    assert {item.stat().st_mode & 0o777 for item in path.parent.iterdir()} == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("torn", [b"{", b'{"action":"approve","actor":"a', b"\x00" * 500])
def test_a_torn_last_line_is_not_believed_and_the_next_append_moves_it_aside(
    ledger: FileLedger, path: Path, torn: bytes
) -> None:
    write(ledger)
    with path.open("ab") as stream:
        stream.write(torn)
    assert ledger.verify() == 1
    write(ledger)
    assert ledger.verify() == 2
    assert path.with_name("ledger.jsonl.torn").read_bytes() == torn + b"\n"


def test_writers_killed_one_after_another_before_the_head_moved_have_written(
    ledger: FileLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = files.write_atomically
    for already in range(4):

        def die(destination: Path, data: bytes, already: int = already) -> None:
            if load(Head, data).entries > already:
                raise KeyboardInterrupt
            publish(destination, data)

        monkeypatch.setattr(files, "write_atomically", die)
        with pytest.raises(KeyboardInterrupt):
            write(ledger)
        assert ledger.verify() == already + 1
    monkeypatch.undo()
    assert write(ledger).sequence == 4
    assert ledger.verify() == 5


def test_a_changed_entry_is_named(ledger: FileLedger, path: Path) -> None:
    for _ in range(3):
        write(ledger)
    path.write_bytes(path.read_bytes().replace(b"measured", b"invented", 1))
    with pytest.raises(Refused, match="entry 0"):
        ledger.verify()
    with pytest.raises(Refused, match="entry 0"):
        ledger.entries("shop")


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_entries_cut_from_the_end_are_missed(ledger: FileLedger, path: Path, kept: int) -> None:
    for _ in range(3):
        write(ledger)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept]))
    with pytest.raises(Refused, match=f"entry {kept} of the ledger is missing, of 3"):
        ledger.verify()
    with pytest.raises(Refused):
        write(ledger)


def test_a_line_longer_than_any_entry_is_refused(ledger: FileLedger, path: Path) -> None:
    write(ledger)
    with path.open("ab") as stream:
        stream.write(b"x" * (3 * MAX_LINE_BYTES))
    with pytest.raises(Refused, match="entry 1"):
        ledger.verify()
    with pytest.raises(Refused, match="entry 1"):
        write(ledger)


def test_an_entry_too_long_for_a_line_changes_nothing(ledger: FileLedger, path: Path) -> None:
    write(ledger)
    with pytest.raises(TooLarge, match="Shorten"):
        write(ledger, "x" * MAX_LINE_BYTES)
    assert ledger.verify() == 1
    assert not path.with_name("ledger.jsonl.torn").exists()


@pytest.mark.parametrize(("actor", "action"), [("", "approve"), ("ada", " ")])
def test_nobody_and_nothing_are_not_recorded(ledger: FileLedger, actor: str, action: str) -> None:
    with pytest.raises(BadInput):
        ledger.append(actor=actor, action=action, model="m", version="1", reason="")
    assert ledger.verify() == 0


def test_a_place_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "folder").mkdir()
    with pytest.raises(Unavailable):
        FileLedger(tmp_path / "file" / "ledger", ManualClock())
    with pytest.raises(Unavailable):
        write(FileLedger(tmp_path / "folder", ManualClock()))


def test_a_full_disk_changes_nothing(tiny_disk: Path) -> None:
    ledger = FileLedger(tiny_disk / "ledger", ManualClock())
    write(ledger)
    filler = tiny_disk / "filler"
    with filler.open("wb", buffering=0) as stream, pytest.raises(OSError, match="space"):
        while True:
            stream.write(b"x" * 4096)
    for reason in ("short: its line fits into the last block, its head does not", "x" * 20_000):
        with pytest.raises(Unavailable, match="Free space"):
            write(ledger, reason)
        assert ledger.verify() == 1
    filler.unlink()
    write(ledger, "x" * 20_000)
    assert ledger.verify() == 2
    assert not (tiny_disk / "ledger.torn").exists()


def test_threads_append_one_chain(ledger: FileLedger, path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        entries = list(pool.map(lambda _: write(FileLedger(path, ManualClock())), range(40)))
    assert sorted(entry.sequence for entry in entries) == list(range(40))
    assert ledger.verify() == 40


_WRITER = """
import sys
from pathlib import Path
from infra.clocks import SystemClock
from infra.registry.ledger import FileLedger
ledger = FileLedger(Path(sys.argv[1]), SystemClock())
number = 0
while True:
    ledger.append(actor="a", action="b", model="m", version="1", reason=f"{sys.argv[2]} {number}")
    print(number, flush=True)
    number += 1
"""


def test_killed_writers_lose_nothing_that_was_acknowledged(ledger: FileLedger, path: Path) -> None:
    acknowledged: set[str] = set()
    for generation in range(3):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", _WRITER, str(path), f"{generation}-{number}"],
                stdout=subprocess.PIPE, text=True,
            )
            for number in range(2)
        ]  # fmt: skip
        for number, writer in enumerate(writers):
            assert writer.stdout is not None
            for _ in range(5 + generation):
                line = writer.stdout.readline().strip()
                acknowledged.add(f"{generation}-{number} {line}")
        for number, writer in enumerate(writers):
            writer.send_signal(signal.SIGKILL)
            rest, _ = writer.communicate()
            acknowledged |= {
                f"{generation}-{number} {line.strip()}"
                for line in rest.splitlines(keepends=True)
                if line.endswith("\n")
            }
    write(ledger)
    assert ledger.verify() > len(acknowledged)
    assert acknowledged <= {entry.reason for entry in ledger.entries("m")}
