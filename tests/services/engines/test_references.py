from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from services.engines.references import MOST_KEPT, References
from services.engines.tensors import save_cases
from tests.services.engines.conftest import Yard, make_yard
from validators.contracts.digest import Digest, digest_bytes

KEY, OTHER = digest_bytes(b"key"), digest_bytes(b"other")


def references_of(yard: Yard) -> References:
    folder = yard.root / "work"
    folder.mkdir(exist_ok=True)
    return References(folder, yard.signer, yard.verifier)


@pytest.fixture
def references(yard: Yard) -> References:
    return references_of(yard)


def keep(references: References, key: Digest, value: float) -> None:
    written = references.folder.parent / "answers.npz"
    save_cases(written, [{"out": np.full((2, 3), value, np.float32)}, {"out": np.zeros(1)}])
    references.keep(key, written)


def files_of(references: References) -> tuple[Path, Path]:
    (answers,) = references.folder.glob("*.npz")
    (seal,) = references.folder.glob("*.json")
    return answers, seal


def test_answers_come_back_as_they_were_kept(references: References) -> None:
    assert references.find(KEY) is None
    keep(references, KEY, 1.5)
    found = references.find(KEY)
    assert found is not None and [list(case) for case in found] == [["out"], ["out"]]
    assert (found[0]["out"] == 1.5).all() and found[0]["out"].shape == (2, 3)
    assert references.find(OTHER) is None


DAMAGE: dict[str, Callable[[Path, Path], object]] = {
    "truncated": lambda answers, seal: os.truncate(answers, answers.stat().st_size // 2),
    "empty": lambda answers, seal: os.truncate(answers, 0),
    "of other numbers": lambda answers, seal: save_cases(answers, [{"out": np.ones(1)}]),
    "gone": lambda answers, seal: answers.unlink(),
    "without its seal": lambda answers, seal: seal.unlink(),
    "under half a seal": lambda answers, seal: os.truncate(seal, 20),
    "under no seal": lambda answers, seal: seal.write_bytes(b"{}"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_not_as_it_was_sealed_is_absent_and_can_be_kept_again(
    references: References, damage: str
) -> None:
    keep(references, KEY, 1.5)
    DAMAGE[damage](*files_of(references))
    assert references.find(KEY) is None
    keep(references, KEY, 2.5)
    found = references.find(KEY)
    assert found is not None and (found[0]["out"] == 2.5).all()


def test_answers_that_a_stranger_sealed_or_that_answer_something_else_are_not_read(
    references: References, tmp_path: Path
) -> None:
    keep(references, KEY, 1.5)
    ours = files_of(references)
    stranger = references_of(make_yard(tmp_path / "stranger"))
    keep(stranger, KEY, 9.0)
    for mine, theirs in zip(ours, files_of(stranger), strict=True):
        mine.write_bytes(theirs.read_bytes())
    assert references.find(KEY) is None
    for path in ours:
        path.unlink()
    keep(references, OTHER, 9.0)
    for mine, others in zip(ours, files_of(references), strict=True):
        others.replace(mine)
    assert references.find(KEY) is None


def test_the_oldest_are_forgotten_with_their_seals(references: References) -> None:
    keys = [digest_bytes(bytes([at])) for at in range(MOST_KEPT + 2)]
    for at, key in enumerate(keys):
        keep(references, key, at)
        for path in references.folder.iterdir():
            os.utime(path, (path.stat().st_mtime - 10,) * 2)  # the youngest is the last one kept
    assert [references.find(key) is not None for key in keys] == [False] * 2 + [True] * MOST_KEPT
    assert len(list(references.folder.iterdir())) == 2 * MOST_KEPT


def test_a_name_that_leads_nowhere_stops_nothing(references: References) -> None:
    """As where another process forgets a file between its listing and the look at its age."""
    (references.folder / "reference-gone.npz").symlink_to(references.folder / "nothing")
    keep(references, KEY, 1.5)
    assert references.find(KEY) is not None
