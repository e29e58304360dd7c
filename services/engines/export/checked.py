"""The checks between a source and every build. An ONNX that passes is what its contract says.

Structure first (operators, weights, the checker's own rules), then the contract against the graph,
then one run on ONNX Runtime: a graph can declare shapes that it does not give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from services.engines.backends.onnxruntime.build import PROVIDERS, options
from services.engines.backends.onnxruntime.probe import library
from services.engines.cases import Case, make_cases
from services.engines.export.graph import graphs, serialise
from services.engines.tensors import numpy_type
from validators.contracts.encoder import EncoderContract
from validators.contracts.engine import ShapeProfile
from validators.contracts.errors import BadInput, Unsupported
from validators.contracts.tensors import TensorSpec, bind_shape

STANDARD_DOMAINS = frozenset({"", "ai.onnx"})


def check_encoder(
    model: onnx.ModelProto,
    contract: EncoderContract,
    profiles: Sequence[ShapeProfile],
    *,
    run: bool = True,
) -> bytes:
    """The checked model's bytes. `run=False` for types that ONNX Runtime cannot compute.

    Raises:
        BadInput: custom operators, NaN or infinite weights, a file that ONNX's own checker refuses,
            or tensors other than the contract's, as declared or as computed.
    """
    refuse_custom_operators(model)
    refuse_nonfinite_weights(model)
    inferred = _run_checker(model, contract.name)
    _compare_names("input", _inputs(inferred.graph), contract.inputs)
    _compare_names("output", list(inferred.graph.output), contract.outputs)
    spans = _fixed_by_profiles(contract, profiles)
    for value, spec in _paired(_inputs(inferred.graph), contract.inputs):
        _compare_declared("input", value, spec, spans)
    for value, spec in _paired(list(inferred.graph.output), contract.outputs):
        _compare_declared("output", value, spec, spans)
    data = serialise(model)
    if run:
        _try_out(data, contract, profiles)
    return data


def refuse_custom_operators(model: onnx.ModelProto) -> None:
    """Raise Unsupported, naming operators and nodes, where one is not a standard ONNX operator."""
    custom = [
        f"{node.domain}::{node.op_type} ({node.name or 'unnamed'})"
        for graph in graphs(model.graph)
        for node in graph.node
        if node.domain not in STANDARD_DOMAINS
    ]
    if custom:
        more = f" and {len(custom) - 5} more" if len(custom) > 5 else ""
        raise Unsupported(
            f"the model uses operators outside standard ONNX: {', '.join(custom[:5])}{more}",
            where=custom[0],
            remedy="Export it with standard operators only: no backend here has these.",
        )


def refuse_nonfinite_weights(model: onnx.ModelProto) -> None:
    """Raise BadInput, naming the tensor, where a weight is NaN or infinite.

    Infinities are let through in a mask: a tensor whose other values are all 0 or 1.
    """
    for name, tensor in _constants(model):
        if tensor.data_type not in _FLOATING:
            continue
        problem = nonfinite_problem(numpy_helper.to_array(tensor))
        if problem:
            raise BadInput(
                f"weight {name} {problem}",
                where=name,
                remedy="Train or convert the model again: these numbers are lost.",
            )


def nonfinite_problem(array: npt.NDArray[Any]) -> str | None:
    """What is wrong with a constant's values, or None."""
    values = np.asarray(array, dtype=np.float64) if array.dtype.itemsize != 4 else array
    finite = np.isfinite(values)
    if finite.all():
        return None
    if nans := int(np.isnan(values).sum()):
        return f"holds {nans} NaN in {values.size} values"
    rest = values[finite]
    if np.isin(rest, (0.0, 1.0)).all():
        return None
    return f"holds {int((~finite).sum())} infinities in {values.size} values"


_FLOATING = {
    onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16,
    onnx.TensorProto.DOUBLE,
}  # fmt: skip


def _constants(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    for graph in graphs(model.graph):
        for tensor in graph.initializer:
            yield tensor.name, tensor
        for sparse in graph.sparse_initializer:
            yield sparse.values.name, sparse.values
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.TENSOR:
                    yield node.output[0] if node.output else node.name, attribute.t


def _run_checker(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    try:
        onnx.checker.check_model(model, full_check=True)
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except (
        onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError, RuntimeError,
    ) as error:  # fmt: skip
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise BadInput(
            f"ONNX's own checker refuses the model: {lines[0][:300]}",
            where=name,
            remedy="Export it again with a current exporter.",
        ) from error
    return inferred


def _inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    weights = {tensor.name for tensor in graph.initializer}
    return [item for item in graph.input if item.name not in weights]


def _compare_names(
    side: str, values: list[onnx.ValueInfoProto], specs: Sequence[TensorSpec]
) -> None:
    present, declared = [item.name for item in values], [spec.name for spec in specs]
    if sorted(present) != sorted(declared):
        raise BadInput(
            f"the model's {side}s are {present}, its contract says {declared}",
            where=", ".join(sorted(set(present) ^ set(declared))),
            remedy=f"Declare exactly the model's {side}s, by their names.",
        )


def _paired(
    values: list[onnx.ValueInfoProto], specs: Sequence[TensorSpec]
) -> Iterator[tuple[onnx.ValueInfoProto, TensorSpec]]:
    by_name = {item.name: item for item in values}
    return ((by_name[spec.name], spec) for spec in specs)


def _fixed_by_profiles(
    contract: EncoderContract, profiles: Sequence[ShapeProfile]
) -> dict[str, set[int]]:
    """The sizes that each named dimension of the inputs takes at the profiles' corners."""
    sizes: dict[str, set[int]] = {}
    for case in make_cases(contract.inputs, profiles, between=0):
        for spec in contract.inputs:
            for dim, size in zip(spec.shape, case.feeds[spec.name].shape, strict=True):
                if isinstance(dim, str):
                    sizes.setdefault(dim, set()).add(size)
    return sizes


def _compare_declared(
    side: str, value: onnx.ValueInfoProto, spec: TensorSpec, spans: dict[str, set[int]]
) -> None:
    """Type, rank and fixed dims as the graph declares them; what it leaves open is run."""
    tensor = value.type.tensor_type
    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if dtype != numpy_type(spec):
        raise BadInput(
            f"{side} {spec.name} is {dtype} in the model, {spec.dtype.value} in its contract",
            where=spec.describe(), remedy="Correct the contract, or cast in the model.",
        )  # fmt: skip
    if not tensor.HasField("shape"):
        return
    dims = [item.dim_value if item.HasField("dim_value") else None for item in tensor.shape.dim]
    same_rank = len(dims) == len(spec.shape)
    if not same_rank or any(
        size is not None and not _agrees(size, dim, spans)
        for size, dim in zip(dims, spec.shape, strict=True)
    ):
        shown = ["?" if size is None else size for size in dims]
        raise BadInput(
            f"{side} {spec.name} has shape {shown} in the model, not its contract's "
            f"{list(spec.shape)}",
            where=spec.describe(), remedy="Correct the contract's shape, or export it dynamic.",
        )  # fmt: skip


def _agrees(size: int, dim: int | str, spans: dict[str, set[int]]) -> bool:
    if isinstance(dim, int):
        return size == dim
    return spans.get(dim, {size}) == {size}  # static here is fine where no profile varies it


def _try_out(data: bytes, contract: EncoderContract, profiles: Sequence[ShapeProfile]) -> None:
    """Run two shapes where there are two: a constant that looks like a batch shows then."""
    ort = library()
    cases = make_cases(contract.inputs, profiles, between=0)
    try:
        session = ort.InferenceSession(data, options(ort, 1, optimise=False), providers=PROVIDERS)
        for case in cases[:2]:
            names = [spec.name for spec in contract.outputs]
            answer = dict(zip(names, session.run(names, case.feeds), strict=True))
            check_outputs(answer, case, contract)
    except BadInput:
        raise
    except Exception as error:  # ONNX Runtime's exceptions share no base but Exception
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise BadInput(
            f"ONNX Runtime cannot run the model: {lines[0][:300]}",
            where=contract.name,
            remedy="Check the contract's shapes, ranges and profiles against the model.",
        ) from error


def check_outputs(
    answer: dict[str, npt.NDArray[Any]], case: Case, contract: EncoderContract
) -> None:
    """Raise BadInput where computed outputs are not what the contract promises."""
    dims: dict[str, int] = {}
    for spec in contract.inputs:
        dims = bind_shape(spec, case.feeds[spec.name].shape, dims)
    for spec in contract.outputs:
        array = answer[spec.name]
        if array.dtype != numpy_type(spec):
            raise BadInput(
                f"output {spec.name} comes out as {array.dtype}", where=spec.describe(),
                remedy="Correct the contract's type, or cast in the model.",
            )  # fmt: skip
        try:
            dims = bind_shape(spec, array.shape, dims)
        except BadInput as error:
            raise BadInput(
                f"the output contract does not hold when run ({case.name}): {error.what}",
                where=spec.describe(),
                remedy="Correct the contract's shape: this is what the model gives.",
            ) from error
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise BadInput(
                f"output {spec.name} holds NaN on ordinary inputs ({case.name})",
                where=spec.describe(),
                remedy="Check the weights and the declared input range.",
            )
