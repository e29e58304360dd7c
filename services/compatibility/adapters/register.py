"""Where adapters are registered: one signed document for each pair of encoder fingerprints.

adapters/<old encoder>/<new encoder>   → SealedAdapters, the adapters of all outputs
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from validators.compatibility.adapters import AdapterRecord
from validators.contracts.digest import Digest, canonical_json, hex_of, short
from validators.contracts.documents import load
from validators.contracts.errors import BadInput, Refused
from validators.contracts.ports import ObjectStore, Signature, Signer, Verifier

PREFIX = "adapters/"


@dataclass(frozen=True, slots=True)
class SealedAdapters:
    """The registered document."""

    adapters: tuple[AdapterRecord, ...]
    signature: Signature


def register_adapters(
    store: ObjectStore, signer: Signer, records: Sequence[AdapterRecord]
) -> Digest:
    """Sign and name the adapters of one pair of versions; they replace what was there.

    Raises:
        BadInput: none, or of several pairs, or two of one output.
        Conflict: somebody else registered this pair at the same time.
    """
    pairs = {(item.old.encoder, item.new.encoder) for item in records}
    if len(pairs) != 1 or len({item.output for item in records}) != len(records):
        raise BadInput(
            f"{len(records)} adapters of {len(pairs)} pairs of versions are no registration",
            where="adapters",
            remedy="Register the adapters of one pair, one for each output.",
        )
    ordered = tuple(sorted(records, key=lambda item: item.output))
    document = canonical_json(SealedAdapters(ordered, signer.sign(_payload(ordered))))
    name = _reference(*next(iter(pairs)))
    before, digest = store.reference(name), store.put(document)
    if before != digest:
        store.set_reference(name, digest, expected=before)
    return digest


def find_adapters(
    store: ObjectStore, verifier: Verifier, old: Digest, new: Digest
) -> tuple[AdapterRecord, ...]:
    """The adapters from the encoder `new` to the encoder `old`, by fingerprint; none where none is.

    Raises:
        Refused: a document that is not signed by a trusted key, or is of another pair.
        NotFound, Unavailable: as the store raises.
    """
    digest = store.reference(_reference(old, new))
    if digest is None:
        return ()
    document = load(SealedAdapters, store.get(digest), where=digest)
    verifier.verify(_payload(document.adapters), document.signature)
    if any((item.old.encoder, item.new.encoder) != (old, new) for item in document.adapters):
        raise Refused(
            "the registered adapters are of another pair of versions",
            where=f"{short(old)}, {short(new)}",
            remedy="Fit and register the adapter again.",
        )
    return document.adapters


def registered_pairs(store: ObjectStore) -> Iterator[tuple[Digest, Digest]]:
    """(old, new) fingerprints of every pair that has adapters."""
    for name in store.references(PREFIX):
        _, old, new = name.split("/")
        yield Digest(f"sha256:{old}"), Digest(f"sha256:{new}")


def _payload(adapters: tuple[AdapterRecord, ...]) -> bytes:
    """What the signature covers. The kind keeps it from passing for another signed document."""
    return canonical_json({"kind": "adapters", "value": adapters})


def _reference(old: Digest, new: Digest) -> str:
    return f"{PREFIX}{hex_of(old)}/{hex_of(new)}"
