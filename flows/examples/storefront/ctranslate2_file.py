"""Reader of CTranslate2's model file (`model.bin`, format version 6), without CTranslate2.

Little-endian: u32 version, text spec name, u32 revision, u32 count, then the variables (text name,
u8 rank, u32 dimensions, u8 type, u32 bytes, data), u32 count, then the aliases (two texts). A text
is u16 length, bytes, and a zero that the length counts. Every length is checked against the file.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from validators.contracts.errors import Refused, TooLarge

FORMAT_VERSION = 6
MAX_FILE_BYTES = 512 * 1024 * 1024
MAX_VARIABLES = 10_000
MAX_RANK = 4
_TYPES: dict[int, np.dtype[Any]] = {
    0: np.dtype("<f4"),
    1: np.dtype("i1"),
    2: np.dtype("<i2"),
    3: np.dtype("<i4"),
    4: np.dtype("<f2"),
}


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The named arrays of one model. `spec` is the architecture that wrote it."""

    spec: str
    revision: int
    variables: dict[str, npt.NDArray[Any]]
    aliases: dict[str, str]


def read_model(path: Path) -> ModelFile:
    """The model file's arrays, as views of its bytes.

    Raises:
        TooLarge: more than MAX_FILE_BYTES.
        Refused: another format, a length that does not fit, or bytes left over.
    """
    size_bytes = path.stat().st_size
    if size_bytes > MAX_FILE_BYTES:
        raise TooLarge(f"a model file of {size_bytes} bytes is too large", where=path.name)
    return parse_model(path.read_bytes(), where=path.name)


def parse_model(data: bytes, *, where: str = "") -> ModelFile:
    """As `read_model`, from bytes."""
    reader = _Reader(data, where)
    version = reader.number("<I")
    if version != FORMAT_VERSION:
        raise reader.refuse(f"format version {version} is not {FORMAT_VERSION}")
    spec, revision = reader.text(), reader.number("<I")
    variables = dict(reader.variable() for _ in range(reader.count()))
    aliases = {reader.text(): reader.text() for _ in range(reader.count())}
    if reader.offset != len(data):
        raise reader.refuse(f"{len(data) - reader.offset} bytes are left over")
    return ModelFile(spec, revision, variables, aliases)


@dataclass(slots=True)
class _Reader:
    data: bytes
    where: str
    offset: int = field(default=0)

    def take(self, size: int) -> memoryview:
        if self.offset + size > len(self.data):
            raise self.refuse(f"{size} bytes are wanted where {len(self.data) - self.offset} are")
        self.offset += size
        return memoryview(self.data)[self.offset - size : self.offset]

    def number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def count(self) -> int:
        count = self.number("<I")
        if count > MAX_VARIABLES:
            raise self.refuse(f"it announces {count} entries")
        return count

    def text(self) -> str:
        raw = bytes(self.take(self.number("<H")))
        try:
            return raw.removesuffix(b"\0").decode("ascii")
        except UnicodeDecodeError as error:
            raise self.refuse("a name is not ASCII") from error

    def variable(self) -> tuple[str, npt.NDArray[Any]]:
        name, rank = self.text(), self.number("<B")
        if rank > MAX_RANK:
            raise self.refuse(f"{name} has rank {rank}")
        shape = tuple(self.number("<I") for _ in range(rank))
        dtype = _TYPES.get(self.number("<B"))
        size = self.number("<I")
        if dtype is None or math.prod(shape) * dtype.itemsize != size:
            raise self.refuse(f"{name} has {size} bytes, which its shape and type do not give")
        return name, np.frombuffer(self.take(size), dtype).reshape(shape)

    def refuse(self, what: str) -> Refused:
        return Refused(
            f"not a CTranslate2 model file: {what}",
            where=f"{self.where} at byte {self.offset}",
            remedy="Install the package again, with its hash pinned.",
        )
