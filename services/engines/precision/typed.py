"""Fp16 and bf16 as a strongly typed graph: casts around what is computed in the narrow type.

Products and convolutions go narrow; what only moves or combines their results follows them. Norms,
softmax, pooling, reductions and every other operator stay in fp32, and so does, for fp16, what
was seen to leave the type's range. Inputs and outputs keep the contract's types.

Own code: ONNX Runtime's `float16` converter knows no bf16, looks at no measured range, and clips
weights that do not fit without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from services.engines.export.graph import graphs
from services.engines.precision.observe import Magnitude
from services.engines.precision.prepare import drop_unused
from validators.contracts.engine import Precision
from validators.contracts.errors import Unsupported

LARGEST = 65504.0 / 2
"""Peaks above half of fp16's largest number stay in fp32: served data may go twice as far."""

SMALLEST = 2.0**-14
"""Peaks below fp16's least normal number stay in fp32: what is subnormal loses digits."""

PRODUCTS = frozenset(("Conv", "ConvTranspose", "Gemm", "MatMul"))
FOLLOWERS = frozenset((
    "Add", "Clip", "Concat", "Div", "Elu", "Expand", "Flatten", "Gather", "Gelu", "HardSigmoid",
    "HardSwish", "Identity", "LeakyRelu", "Max", "MaxPool", "Min", "Mul", "Neg", "Pad", "PRelu",
    "Relu", "Reshape", "Sigmoid", "Slice", "Split", "Squeeze", "Sub", "Tanh", "Tile", "Transpose",
    "Unsqueeze", "Where",
))  # fmt: skip
NARROW = {Precision.FP16: TensorProto.FLOAT16, Precision.BF16: TensorProto.BFLOAT16}
_TYPE_NAMES = {TensorProto.FLOAT16: "tensor(float16)", TensorProto.BFLOAT16: "tensor(bfloat16)"}
_BF16_OPSET = 22  # the first whose convolutions take bf16


@dataclass(frozen=True, slots=True)
class TypedModel:
    model: onnx.ModelProto
    notes: tuple[str, ...]


def watched_values(model: onnx.ModelProto) -> tuple[str, ...]:
    """The values whose ranges decide what may be narrow."""
    narrow = PRODUCTS | FOLLOWERS
    names = [
        name
        for node in model.graph.node
        if node.op_type in narrow
        for name in (*node.input, *node.output)
        if name
    ]
    return tuple(dict.fromkeys(names))


def narrow_model(
    model: onnx.ModelProto, precision: Precision, seen: Mapping[str, Magnitude]
) -> TypedModel:
    """The model computing in fp16 or bf16 where it may.

    Raises:
        Unsupported: no product can be narrow.
    """
    if precision is Precision.BF16 and _opset(model) < _BF16_OPSET:
        model = onnx.version_converter.convert_version(model, _BF16_OPSET)
    rewrite = _Rewrite(model, precision, seen)
    rewrite.run()
    if not rewrite.products:
        raise Unsupported(
            f"no product or convolution of the model can be computed in {precision.value}",
            where=", ".join(rewrite.kept[:5]),
            remedy="Use fp32 for this encoder.",
        )
    return TypedModel(rewrite.model, tuple(rewrite.notes()))


def _opset(model: onnx.ModelProto) -> int:
    found: int = max(item.version for item in model.opset_import if item.domain in ("", "ai.onnx"))
    return found


class _Rewrite:
    """One pass in the graph's order. A value has one home type; casts are made once, on demand."""

    def __init__(
        self, model: onnx.ModelProto, precision: Precision, seen: Mapping[str, Magnitude]
    ) -> None:
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.products = 0
        self.narrowed = 0
        self.kept: list[str] = []  # by their range
        self._precision = precision
        self._to = NARROW[precision]
        self._seen = seen
        self._types = _value_types(model)
        self._opset = _opset(model)
        self._constants = {item.name: item for item in self.model.graph.initializer}
        self._captured = _captured(self.model.graph)
        self._outputs = {item.name for item in self.model.graph.output}
        self._narrow: set[str] = set()  # values whose home type is the narrow one
        self._renamed: dict[str, str] = {}  # graph outputs that a narrow node makes
        self._casts: dict[tuple[str, int], str] = {}
        self._nodes: list[onnx.NodeProto] = []

    def run(self) -> None:
        graph = self.model.graph
        for node in graph.node:
            if self._may_be_narrow(node):
                self._take_narrow(node)
            else:
                for position, name in enumerate(node.input):
                    if name in self._narrow:
                        node.input[position] = self._cast(name, TensorProto.FLOAT)
                self._nodes.append(node)
        for name, inner in self._renamed.items():
            made = helper.make_node("Cast", [inner], [name], to=TensorProto.FLOAT)
            made.name = f"{name}_to_fp32"
            self._nodes.append(made)
        nodes = list(self._nodes)
        del graph.node[:], graph.value_info[:]
        graph.node.extend(nodes)
        drop_unused(graph)

    def notes(self) -> Iterator[str]:
        yield f"{self.narrowed} nodes compute in {self._precision.value}, {self.products} products"
        if self.kept:
            more = f" and {len(self.kept) - 8} more" if len(self.kept) > 8 else ""
            yield f"kept in fp32 by their measured range: {', '.join(self.kept[:8])}{more}"

    def _may_be_narrow(self, node: onnx.NodeProto) -> bool:
        floats = [name for name in (*node.input, *node.output) if name and self._is_float(name)]
        if node.op_type not in PRODUCTS | FOLLOWERS or node.domain or not floats:
            return False
        if node.op_type not in PRODUCTS and not self._follows(node):
            return False
        if self._captured & set(node.output) or not self._schema_takes(node):
            return False
        if any(not self._fits(name) for name in floats):
            self.kept.append(f"{node.op_type} {node.name}")
            return False
        return True

    def _follows(self, node: onnx.NodeProto) -> bool:
        """Something narrow goes in, or it looks rows up in a table (which halves the table)."""
        if node.op_type == "Gather" and node.input[0] in self._constants:
            return True
        return any(name in self._narrow for name in node.input)

    def _fits(self, name: str) -> bool:
        if self._precision is not Precision.FP16:
            return True
        if name in self._constants:
            array = numpy_helper.to_array(self._constants[name])
            finite = array[np.isfinite(array)]
            peak = float(np.abs(finite).max(initial=0.0))
        elif name in self._seen:
            peak = self._seen[name].peak
        else:
            return False  # never seen: nothing is known of it
        return peak == 0 or SMALLEST <= peak <= LARGEST

    def _is_float(self, name: str) -> bool:
        if name in self._constants:
            return self._constants[name].data_type == TensorProto.FLOAT
        return self._types.get(name) == TensorProto.FLOAT

    def _schema_takes(self, node: onnx.NodeProto) -> bool:
        return all(self._formal_takes(node, place, name) for place, name in _places(node) if name)

    def _formal_takes(self, node: onnx.NodeProto, place: tuple[str, int], name: str) -> bool:
        """The operator's schema lets this float be narrow. Sizes and indices are no floats."""
        if not self._is_float(name):
            return True
        schema = onnx.defs.get_schema(node.op_type, self._opset, "")
        formals = schema.inputs if place[0] == "input" else schema.outputs
        formal = formals[min(place[1], len(formals) - 1)]
        for constraint in schema.type_constraints:
            if constraint.type_param_str == formal.type_str:
                return _TYPE_NAMES[self._to] in constraint.allowed_type_strs
        return False

    def _take_narrow(self, node: onnx.NodeProto) -> None:
        for position, name in enumerate(node.input):
            if name and self._is_float(name) and name not in self._narrow:
                node.input[position] = self._cast(name, self._to)
            elif name in self._renamed:
                node.input[position] = self._renamed[name]
        for position, name in enumerate(node.output):
            if name and self._is_float(name):
                self._narrow.add(name)
                if name in self._outputs:
                    self._renamed[name] = f"{name}_{self._precision.value}"
                    node.output[position] = self._renamed[name]
        self._nodes.append(node)
        self.narrowed += 1
        self.products += node.op_type in PRODUCTS

    def _cast(self, name: str, to: int) -> str:
        """The value in another type than its home: a constant converted, else one cast node."""
        known = self._casts.get((name, to))
        if known is not None:
            return known
        label = "fp32" if to == TensorProto.FLOAT else self._precision.value
        made = f"{name}_as_{label}"
        if name in self._constants:
            array = numpy_helper.to_array(self._constants[name])
            kind = helper.tensor_dtype_to_np_dtype(to)
            self.model.graph.initializer.append(numpy_helper.from_array(array.astype(kind), made))
        else:
            source = self._renamed.get(name, name)
            cast = helper.make_node("Cast", [source], [made], to=to, name=f"{made}_cast")
            self._nodes.append(cast)
        self._casts[name, to] = made
        return made


def _places(node: onnx.NodeProto) -> Iterator[tuple[tuple[str, int], str]]:
    for position, name in enumerate(node.input):
        yield ("input", position), name
    for position, name in enumerate(node.output):
        yield ("output", position), name


def _value_types(model: onnx.ModelProto) -> dict[str, int]:
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    return {
        item.name: item.type.tensor_type.elem_type
        for item in (*inferred.input, *inferred.value_info, *inferred.output)
    }


def _captured(graph: onnx.GraphProto) -> set[str]:
    """Values that a graph inside a node reads from outside: they keep their type."""
    return {
        name
        for inner in graphs(graph)
        if inner is not graph
        for node in inner.node
        for name in node.input
    }
