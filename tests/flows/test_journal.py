"""A finished step is found again by what went into it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from flows.journal import Journal, code_digest
from infra.objects.folder import FolderStore
from validators.contracts.digest import Digest, digest_bytes
from validators.contracts.ports import ObjectStore


@dataclass(frozen=True, slots=True)
class Counted:
    value: int
    blob: Digest


class Work:
    """A step that counts how often it is done."""

    def __init__(self, store: ObjectStore, content: bytes = b"result") -> None:
        self.store, self.content, self.done = store, content, 0

    def __call__(self) -> Counted:
        self.done += 1
        return Counted(self.done, self.store.put(self.content))


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "objects")


def test_the_same_inputs_are_not_worked_on_twice(store: FolderStore) -> None:
    work, journal = Work(store), Journal(store)
    first = journal.perform("count", {"a": 1}, Counted, work)
    again = Journal(store).perform("count", {"a": 1}, Counted, work)
    assert (again, work.done) == (first, 1)
    assert [run.cached for run in journal.runs] == [False]


@pytest.mark.parametrize(
    ("name", "inputs"), [("count", {"a": 2}), ("count", {"b": 1}), ("other", {"a": 1})]
)
def test_another_step_or_input_is_worked_on(
    store: FolderStore, name: str, inputs: dict[str, int]
) -> None:
    work, journal = Work(store), Journal(store)
    journal.perform("count", {"a": 1}, Counted, work)
    journal.perform(name, inputs, Counted, work)
    assert work.done == 2


def test_a_result_of_other_code_is_not_recalled(store: FolderStore) -> None:
    work = Work(store)
    Journal(store, code=digest_bytes(b"old")).perform("count", {}, Counted, work)
    Journal(store, code=digest_bytes(b"new")).perform("count", {}, Counted, work)
    assert work.done == 2


def test_a_step_whose_object_is_gone_is_done_again(store: FolderStore) -> None:
    work, journal = Work(store), Journal(store)

    def perform() -> Counted:
        return journal.perform(
            "count", {}, Counted, work, needs=lambda value: [(store, value.blob)]
        )

    store.delete(perform().blob)
    assert store.contains(perform().blob)
    assert [run.cached for run in journal.runs] == [False, False]


def test_a_document_of_another_form_is_not_recalled(store: FolderStore) -> None:
    journal, work = Journal(store), Work(store)
    key = journal.key("count", {}).removeprefix("sha256:")
    store.set_reference(f"steps/count/{key}", store.put(b'{"other":1}'), expected=None)
    journal.perform("count", {}, Counted, work)
    assert work.done == 1
    assert Journal(store).perform("count", {}, Counted, work).value == 1


def test_a_step_that_raises_leaves_no_record(store: FolderStore) -> None:
    def fail() -> Counted:
        raise RuntimeError("half way")

    journal = Journal(store)
    with pytest.raises(RuntimeError):
        journal.perform("count", {}, Counted, fail)
    assert list(store.references()) == []


def test_the_code_has_one_digest() -> None:
    assert code_digest() == code_digest()


def test_what_is_not_to_be_kept_is_made_again(store: FolderStore) -> None:
    work, journal = Work(store), Journal(store)
    for expected in (1, 2):
        found = journal.perform("count", {}, Counted, work, keep=lambda value: value.value > 1)
        assert found.value == expected
    assert journal.perform("count", {}, Counted, work).value == 2
