"""An encoder: a versioned model for one modality, with the contract it promises to keep."""

from __future__ import annotations

from dataclasses import dataclass

from validators.contracts.digest import Digest, digest_value
from validators.contracts.errors import NotFound
from validators.contracts.tensors import StateKind, TensorSpec


@dataclass(frozen=True, slots=True)
class PreprocessSpec:
    """How raw input becomes the encoder's tensors, as data.

    `kind` names a preprocessor (`image`, `wordpiece`, `log_mel`, `tensor`), `options` its settings
    in sorted order, `assets` the files it needs (asset name in the bundle → digest).
    """

    kind: str
    options: tuple[tuple[str, str | int | float | bool], ...] = ()
    assets: tuple[tuple[str, Digest], ...] = ()

    @property
    def digest(self) -> Digest:
        return digest_value("preprocess", self)

    def option(self, name: str) -> str | int | float | bool:
        for key, value in self.options:
            if key == name:
                return value
        raise NotFound(f"preprocessing has no option {name!r}", where=self.kind)

    def asset(self, name: str) -> Digest:
        for key, value in self.assets:
            if key == name:
                return value
        raise NotFound(f"preprocessing has no asset {name!r}", where=self.kind)


@dataclass(frozen=True, slots=True)
class EncoderContract:
    """What an encoder version takes and gives.

    Two versions whose fingerprints differ must not mix their vectors, whatever the dimension.
    """

    name: str
    version: str
    modality: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    preprocess: PreprocessSpec
    state: StateKind = StateKind.STATELESS
    licence: str = ""

    @property
    def digest(self) -> Digest:
        return digest_value("encoder-contract", self)

    def input(self, name: str) -> TensorSpec:
        return _named(self.inputs, name, f"input of {self.name}")

    def output(self, name: str) -> TensorSpec:
        return _named(self.outputs, name, f"output of {self.name}")


def encoder_fingerprint(contract: EncoderContract, onnx_digest: Digest) -> Digest:
    """Travels with every vector: the model's bytes and everything that shapes its input."""
    return digest_value("encoder", {"contract": contract, "onnx": onnx_digest})


def _named(specs: tuple[TensorSpec, ...], name: str, what: str) -> TensorSpec:
    for spec in specs:
        if spec.name == name:
            return spec
    known = ", ".join(spec.name for spec in specs)
    raise NotFound(f"no {what} is called {name!r}", remedy=f"Use one of: {known}.")
