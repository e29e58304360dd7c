from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.contracts import documents
from validators.contracts.digest import canonical_json
from validators.contracts.errors import Refused
from validators.contracts.verdict import Evidence, Finding, Outcome, Verdict

FINDING = Finding("gate", "rule", "subject", Outcome.WARN, 1.5, "two", "Fix it.")


@dataclass(frozen=True, slots=True)
class Small:
    name: str
    count: int = 0


texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.floats(allow_nan=False, allow_infinity=False) | texts
verdicts = st.builds(
    Verdict,
    gate=texts,
    outcome=st.sampled_from(Outcome),
    findings=st.lists(
        st.builds(
            Finding, texts, texts, texts, st.sampled_from(Outcome), numbers, numbers, texts,
            st.booleans(),
        ),
        max_size=3,
    ).map(tuple),
    metrics=st.lists(st.tuples(texts, st.floats(-1e9, 1e9)), max_size=3).map(tuple),
    evidence=st.lists(st.builds(Evidence, texts, texts), max_size=2).map(tuple),
)  # fmt: skip


@given(verdicts)
def test_what_was_written_is_read_back(verdict: Verdict) -> None:
    document = canonical_json(verdict)
    assert documents.load(Verdict, document) == verdict
    assert canonical_json(documents.load(Verdict, document)) == document


def changed(**changes: object) -> bytes:
    value = json.loads(canonical_json(FINDING))
    return json.dumps(value | changes).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not json",
        b"[]",
        b"null",
        b'{"name":"a"}',
        canonical_json(FINDING)[:-1],
        canonical_json(FINDING) + b"{}",
        changed(extra=1),
        changed(outcome="MAYBE"),
        changed(outcome="pass"),
        changed(gate=1),
        changed(waivable="true"),
        changed(measured=None),
        changed(measured=[1]),
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(Refused, match="Finding") as caught:
        documents.load(Finding, data, where="evidence")
    assert caught.value.where == "evidence"


def test_a_missing_key_is_refused_even_where_it_has_a_default() -> None:
    with pytest.raises(Refused):
        documents.load(Small, b'{"name":"a"}')
    assert documents.load(Small, b'{"name":"a","count":0}') == Small("a")


def test_a_document_over_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENT_BYTES", 10)
    with pytest.raises(Refused, match="too large"):
        documents.load(Finding, canonical_json(FINDING))
