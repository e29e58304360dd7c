"""A torch factory (`package.module:factory`) as a module, and as ONNX. Runs in a child process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

from services.engines.cases import ranges
from services.engines.export.graph import rename_interface, strip_provenance
from services.engines.tensors import Arrays, numpy_type
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import ShapeProfile
from validators.contracts.errors import BadInput

OPSET = 20

torch.set_num_threads(1)  # two threads on two busy cores collapse


def load_module(location: str, base: Path) -> torch.nn.Module:
    """Import and call the factory; modules beside the pipeline file are found too.

    Raises:
        BadInput: no such module or factory, or it does not return an nn.Module.
    """
    name, _, factory = location.partition(":")
    sys.path.insert(0, str(base))
    torch.manual_seed(0)  # a factory without trained weights still gives one model
    try:
        make = getattr(importlib.import_module(name), factory)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadInput(
            f"the torch factory cannot be found: {error}",
            where=location,
            remedy="Write it as package.module:factory, importable from the pipeline's folder.",
        ) from error
    module = make()
    if not isinstance(module, torch.nn.Module):
        raise BadInput(
            f"the torch factory returned a {type(module).__name__}, not an nn.Module",
            where=location,
            remedy="Return the module in eval mode.",
        )
    return module.eval()


def export_module(
    module: torch.nn.Module, contract: EncoderContract, profiles: Sequence[ShapeProfile]
) -> onnx.ModelProto:
    """The module as ONNX, with the contract's names and with dynamic dims where a profile varies.

    Raises:
        BadInput: torch cannot export it.
    """
    sizes = _dim_spans(contract, profiles)
    # Neutral names first: an output named like an inner value would make a graph that is not SSA.
    inputs = {f"modalgate_in_{i}": spec.name for i, spec in enumerate(contract.inputs)}
    outputs = {f"modalgate_out_{i}": spec.name for i, spec in enumerate(contract.outputs)}
    dims = {
        dim: torch.export.Dim(dim, min=low, max=high)
        for dim, (low, high) in sizes.items()
        if low < high
    }
    dynamic = tuple(
        {position: dims[dim] for position, dim in enumerate(spec.shape)
         if isinstance(dim, str) and dim in dims}
        for spec in contract.inputs
    )  # fmt: skip
    try:
        program = torch.onnx.export(
            module, _examples(contract, sizes), dynamo=True, opset_version=OPSET,
            input_names=list(inputs), output_names=list(outputs), dynamic_shapes=dynamic,
            external_data=False, optimize=True, verbose=False,
        )  # fmt: skip
    except Exception as error:  # exporters raise whatever the module's own code raised
        raise BadInput(
            f"torch cannot export it: {_first_line(error)}",
            where=contract.name,
            remedy="Make forward take the contract's inputs in order; no data-dependent Python.",
        ) from error
    if program is None:
        raise BadInput("torch exported nothing", where=contract.name)
    model = program.model_proto
    strip_provenance(model)
    rename_interface(model, inputs | outputs)
    return model


def run_module(
    module: torch.nn.Module, contract: EncoderContract, feeds: Sequence[Arrays]
) -> list[Arrays]:
    """The module's own outputs on each set of inputs, by the contract's names."""
    answers = []
    for case in feeds:
        with torch.inference_mode():
            # a copy: from_numpy shares memory, and a module may write in place
            given = module(*(torch.from_numpy(case[spec.name].copy()) for spec in contract.inputs))
        tensors = tuple(given) if isinstance(given, tuple | list) else (given,)
        if len(tensors) != len(contract.outputs):
            raise BadInput(
                f"the module returns {len(tensors)} tensors, its contract lists "
                f"{len(contract.outputs)} outputs",
                where=contract.name,
                remedy="Return the contract's outputs in order.",
            )
        pairs = zip(contract.outputs, tensors, strict=True)
        answers.append({spec.name: tensor.numpy() for spec, tensor in pairs})
    return answers


def _dim_spans(
    contract: EncoderContract, profiles: Sequence[ShapeProfile]
) -> dict[str, tuple[int, int]]:
    """For each named dimension of the inputs, the least and the greatest size of any profile."""
    spans: dict[str, tuple[int, int]] = {}
    for profile in profiles:
        for spec, item in zip(contract.inputs, ranges(contract.inputs, profile), strict=True):
            for dim, low, high in zip(spec.shape, item.minimum, item.maximum, strict=True):
                if isinstance(dim, str):
                    before = spans.get(dim, (low, high))
                    spans[dim] = (min(before[0], low), max(before[1], high))
    return spans


def _examples(
    contract: EncoderContract, spans: dict[str, tuple[int, int]]
) -> tuple[torch.Tensor, ...]:
    """Zeros of sizes that an exporter does not take for constants: 0 and 1 are special to it."""
    sizes: dict[Any, int] = {}
    for position, (dim, (low, high)) in enumerate(spans.items()):
        sizes[dim] = low if low == high else min(high, max(low, 2 + position))
    return tuple(
        torch.from_numpy(np.zeros([sizes.get(dim, dim) for dim in spec.shape], numpy_type(spec)))
        for spec in contract.inputs
    )


def _first_line(error: Exception) -> str:
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    lines = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {lines[0][:300] if lines else ''}"
