from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.examples.storefront import ctranslate2_file
from flows.examples.storefront.ctranslate2_file import parse_model, read_model
from validators.contracts.errors import Refused, TooLarge


def text(value: str) -> bytes:
    return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"


def variable(name: str, array: np.ndarray, kind: int, *, size: int | None = None) -> bytes:
    head = text(name) + struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
    return head + struct.pack("<BI", kind, array.nbytes if size is None else size) + array.tobytes()


def model(
    *variables: bytes, version: int = 6, count: int | None = None, tail: bytes = b""
) -> bytes:
    head = struct.pack("<I", version) + text("Spec") + struct.pack("<I", 3)
    head += struct.pack("<I", len(variables) if count is None else count)
    aliases = struct.pack("<I", 1) + text("other") + text("weight")
    return head + b"".join(variables) + aliases + tail


WEIGHT = np.arange(6, dtype="<f4").reshape(2, 3)
WHOLE = model(
    variable("weight", WEIGHT, 0),
    variable("half", WEIGHT.astype("<f2"), 4),
    variable("flag", np.int8(1) * np.ones((), np.int8), 1),
)


def test_names_shapes_types_and_aliases_are_read() -> None:
    read = parse_model(WHOLE)
    assert (read.spec, read.revision, read.aliases) == ("Spec", 3, {"other": "weight"})
    np.testing.assert_array_equal(read.variables["weight"], WEIGHT)
    np.testing.assert_array_equal(read.variables["half"], WEIGHT)
    assert read.variables["flag"] == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        model(version=5),
        model(count=20_000),
        model(count=2),
        model(variable("weight", WEIGHT, 9)),
        model(variable("weight", WEIGHT, 0, size=4)),
        model(variable("weight", np.ones((1,) * 5, "<f4"), 0)),
        model(tail=b"more"),
        WHOLE[:-1],
        model(variable("gewicht\u00fc", WEIGHT, 0)),
    ],
    ids=["empty", "another version", "too many", "fewer than said", "unknown type", "wrong size",
         "rank 5", "left over", "cut short", "not ascii"],
)  # fmt: skip
def test_a_file_that_does_not_add_up_is_refused(data: bytes) -> None:
    with pytest.raises(Refused, match="CTranslate2"):
        parse_model(data)


def test_dimensions_that_overflow_are_refused_without_reserving_memory() -> None:
    head = text("weight") + struct.pack("<BIIBI", 2, 2**32 - 1, 2**32 - 1, 0, 4) + bytes(4)
    with pytest.raises(Refused):
        parse_model(model(head))


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=8))
def test_a_changed_byte_reads_or_is_refused_and_nothing_else(at: int, noise: bytes) -> None:
    with contextlib.suppress(Refused):
        parse_model(WHOLE[:at] + noise + WHOLE[at + len(noise) :])


def test_a_huge_file_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(WHOLE)
    monkeypatch.setattr(ctranslate2_file, "MAX_FILE_BYTES", 10)
    with pytest.raises(TooLarge):
        read_model(path)
