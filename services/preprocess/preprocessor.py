"""Preprocessing as data: a spec in, a callable out that turns raw input into named tensors.

Kinds: `image`, `wordpiece`, `log_mel`, `tensor`, and `transcript` for decoders; each lives in the
module of its name. The gateway, the release and the tests all build theirs here, so that what was
measured is what is served.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from services.preprocess.image import make_image
from services.preprocess.log_mel import make_log_mel
from services.preprocess.tensor import make_tensor
from services.preprocess.transcript import make_decoder_input
from services.preprocess.wordpiece import make_wordpiece
from validators.contracts.digest import Digest
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import Unsupported

RawInput = bytes | str | npt.NDArray[Any]
"""Encoded media, a text, or samples (float32 mono 16 kHz PCM)."""

ReadAsset = Callable[[Digest], bytes]


class Preprocessor(Protocol):
    """Raw input → the encoder's tensors by name, a batch of one.

    The same input gives the same bytes, every time; may be called from several threads at once.
    """

    def __call__(self, raw: RawInput) -> dict[str, npt.NDArray[np.generic]]:
        """Raises BadInput (or TooLarge, Unsupported) where the input cannot be read."""
        ...


_MAKERS: dict[str, Callable[[PreprocessSpec, ReadAsset], Preprocessor]] = {
    "image": make_image,
    "wordpiece": make_wordpiece,
    "log_mel": make_log_mel,
    "tensor": make_tensor,
    "transcript": make_decoder_input,
}

KINDS: tuple[str, ...] = tuple(_MAKERS)


def make_preprocessor(spec: PreprocessSpec, read_asset: ReadAsset) -> Preprocessor:
    """The preprocessor that the spec describes; assets are read now, not per request.

    Raises:
        Unsupported: an unknown kind.
        BadInput: an unknown, missing or ill-typed option; an asset that cannot be used.
    """
    maker = _MAKERS.get(spec.kind)
    if maker is None:
        raise Unsupported(
            f"there is no preprocessing of kind {spec.kind!r}",
            where="preprocess.kind",
            remedy=f"Use one of: {', '.join(KINDS)}.",
        )
    return maker(spec, read_asset)
