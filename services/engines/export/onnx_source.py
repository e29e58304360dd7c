"""An ONNX file as given: read within bounds, external data made part of it, unused outputs cut."""

from __future__ import annotations

import mmap
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import external_data_helper, inliner

from services.engines.export.graph import MAX_MODEL_BYTES, graphs, keep_outputs, strip_provenance
from validators.contracts.encoder import EncoderContract
from validators.contracts.errors import BadInput, NotFound, TooLarge


def read_onnx(path: Path) -> onnx.ModelProto:
    """Parse a file, without its external data.

    Raises:
        BadInput: missing, empty, truncated, not ONNX.  TooLarge: over MAX_MODEL_BYTES.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise NotFound(
            "the ONNX file cannot be read", where=path.name, remedy="Check the path in source.onnx."
        ) from error
    if size == 0:
        raise BadInput("the ONNX file is empty", where=path.name, remedy="Export it again.")
    if size > MAX_MODEL_BYTES:
        raise TooLarge(
            f"the ONNX file has {size} bytes, over {MAX_MODEL_BYTES}", where=path.name,
            remedy="Split the model, or store its weights in half precision.",
        )  # fmt: skip
    try:
        model = onnx.load_model_from_string(path.read_bytes())
    except DecodeError as error:
        raise BadInput(
            "the file is not an ONNX model, or is cut short", where=path.name,
            remedy="Export or download it again and compare its size.",
        ) from error  # fmt: skip
    if model.ir_version == 0 or not model.graph.node:
        raise BadInput(
            "the file holds no ONNX graph", where=path.name, remedy="Export the model again."
        )
    return model


def load_source(path: Path, contract: EncoderContract) -> onnx.ModelProto:
    """The file's model, self-contained, with the outputs that the contract declares."""
    model = read_onnx(path)
    _inline_external_data(model, path)
    if model.functions:
        model = inliner.inline_local_functions(model)
    strip_provenance(model)
    declared = [spec.name for spec in contract.outputs]
    present = {item.name for item in model.graph.output}
    if lacking := [name for name in declared if name not in present]:
        raise BadInput(
            f"the model has no output {lacking[0]!r}", where=f"{contract.name}, {path.name}",
            remedy="Its outputs are: " + ", ".join(sorted(present)) + ". Correct the contract.",
        )  # fmt: skip
    return keep_outputs(model, declared)


def external_files(path: Path) -> tuple[Path, ...]:
    """The data files that an ONNX file names, where they would lie beside it, sorted.

    What they hold is part of the model. Raises as `read_onnx` does.
    """
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as data:
            if data.find(b"location") < 0:  # the key of every reference to such a file
                return ()
    except (OSError, ValueError):  # absent or empty: said by whoever reads it
        return ()
    named = {
        external_data_helper.ExternalDataInfo(tensor).location
        for graph in graphs(read_onnx(path).graph)
        for tensor in graph.initializer
        if external_data_helper.uses_external_data(tensor)
    }
    return tuple(path.parent / name for name in sorted(named))


def _inline_external_data(model: onnx.ModelProto, path: Path) -> None:
    """Read external tensors from beside the file, and from nowhere else."""
    folder = path.resolve().parent
    total = model.ByteSize()
    seen: set[Path] = set()
    for graph in graphs(model.graph):
        for tensor in graph.initializer:
            if not external_data_helper.uses_external_data(tensor):
                continue
            location = external_data_helper.ExternalDataInfo(tensor).location
            file = (folder / location).resolve()
            if not file.is_relative_to(folder) or not file.is_file():
                raise BadInput(
                    f"tensor {tensor.name} lies in {location[:80]!r}, which is not a file beside "
                    "the model", where=path.name,
                    remedy="Keep external data in the model's own folder.",
                )  # fmt: skip
            if file not in seen:
                seen.add(file)
                total += file.stat().st_size
            if total > MAX_MODEL_BYTES:
                raise TooLarge(
                    f"with its external data the model takes over {MAX_MODEL_BYTES} bytes",
                    where=path.name, remedy="Split the model.",
                )  # fmt: skip
    if not seen:
        return
    try:
        external_data_helper.load_external_data_for_model(model, str(folder))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise BadInput(
            f"its external data cannot be read: {str(error)[:200]}", where=path.name,
            remedy="Copy the model with its data files again.",
        ) from error  # fmt: skip
