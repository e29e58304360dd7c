"""Answers of source models, kept for a while: the engines of every backend meet the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from services.engines.tensors import Arrays, load_cases
from validators.contracts.digest import Digest, canonical_json, digest_chunks, short
from validators.contracts.documents import load
from validators.contracts.errors import Refused
from validators.contracts.ports import Signature, Signer, Verifier

MOST_KEPT = 8
"""Answers that stay in the folder, the youngest."""

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ReferenceAnswers:
    """Which question a file of answers is for, and the digest of the file."""

    key: Digest
    content: Digest


@dataclass(frozen=True, slots=True)
class SealedReference:
    """The document beside a file of answers."""

    answers: ReferenceAnswers
    signature: Signature


@dataclass(frozen=True, slots=True)
class References:
    """A folder of answers by key. Verdicts rest on them: only what this signer sealed is read.

    Whatever is missing, damaged, of another key or signed by a stranger counts as absent, and so
    does what another process replaces or forgets meanwhile.
    """

    folder: Path
    signer: Signer
    verifier: Verifier

    def find(self, key: Digest) -> list[Arrays] | None:
        """The answers kept under this key, exactly as they were sealed; None where none are."""
        answers, seal = self._paths(key)
        try:
            document = load(SealedReference, seal.read_bytes(), where=seal.name)
            self.verifier.verify(_payload(document.answers), document.signature)
            with answers.open("rb") as stream:
                if document.answers != ReferenceAnswers(key, _digest(stream)):
                    return None
                stream.seek(0)
                return load_cases(stream)  # the file that was hashed, whatever has its name now
        except (OSError, Refused):
            return None

    def keep(self, key: Digest, written: Path) -> None:
        """Seal a file that `save_cases` wrote, and move it here from the same file system."""
        self._forget()
        answers, seal = self._paths(key)
        with written.open("rb") as stream:
            kept = ReferenceAnswers(key, _digest(stream))
        sealed = written.with_suffix(".sealed.json")
        sealed.write_bytes(canonical_json(SealedReference(kept, self.signer.sign(_payload(kept)))))
        written.replace(answers)
        sealed.replace(seal)

    def _paths(self, key: Digest) -> tuple[Path, Path]:
        answers = self.folder / f"reference-{short(key)}.npz"
        return answers, answers.with_suffix(".json")

    def _forget(self) -> None:
        found = sorted(self.folder.glob("reference-*.npz"), key=_written_at)
        for path in found[: max(0, len(found) - MOST_KEPT + 1)]:
            path.unlink(missing_ok=True)
            path.with_suffix(".json").unlink(missing_ok=True)


def _payload(answers: ReferenceAnswers) -> bytes:
    """What is signed. The kind keeps it from passing for another signed document."""
    return canonical_json({"kind": "reference-answers", "value": answers})


def _digest(stream: BinaryIO) -> Digest:
    def chunks() -> Iterator[bytes]:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk

    return digest_chunks(chunks())


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process forgot it just now
        return 0.0
