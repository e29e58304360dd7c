"""What a profile's tensors take at its largest shape, read off the exported graph.

A backend that reuses buffers needs at least what is alive at once (the lower bound of every memory
planner; Pisarchyk and Lee 2020, "Efficient Memory Management for Deep Neural Net Inference"). That
instant is found at the largest shape there is, and the tensors alive then are priced by their own
named dimensions at every other. Weights are left out: profiles of one engine share them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from services.engines.profiles.cost import MemoryModel, ShapeFormula, Term

Exponents = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes by shape; `unsized` tensors of the graph have a size that nobody named.

    Those count with their named dimensions only.
    """

    memory: MemoryModel
    unsized: int


@dataclass(frozen=True, slots=True)
class _Tensor:
    """Bytes per element of the named dimensions, and how these come in."""

    bytes_each: float
    exponents: Exponents
    sized: bool

    def at(self, sizes: Mapping[str, int]) -> float:
        powers = [float(sizes[name]) ** power for name, power in self.exponents]
        return math.prod(powers, start=self.bytes_each)


_UNKNOWN = _Tensor(1.0, (), sized=False)


def footprint_of(model: onnx.ModelProto, maximum: Mapping[str, int]) -> Footprint:
    """The footprint of a checked graph whose named dimensions are at most `maximum`."""
    tensors = _tensors(model.graph, maximum)
    bytes_of: dict[Exponents, float] = {}
    for name in _most_alive(model.graph, tensors, maximum):
        item = tensors[name]
        bytes_of[item.exponents] = bytes_of.get(item.exponents, 0.0) + item.bytes_each
    terms = tuple(Term(each, exponents) for exponents, each in sorted(bytes_of.items()))
    return Footprint(
        MemoryModel(ShapeFormula(terms or (Term(1.0, ()),)), bytes_per_element=1.0),
        sum(not item.sized for item in tensors.values()),
    )


def _most_alive(
    graph: onnx.GraphProto, tensors: Mapping[str, _Tensor], maximum: Mapping[str, int]
) -> list[str]:
    """The tensors that are alive at the instant that needs most."""
    last = _last_uses(graph)
    alive = {item.name for item in graph.input if item.name in tensors}
    best, most = sorted(alive), -1.0
    for index, node in enumerate(graph.node):
        alive |= {name for name in node.output if name in tensors}
        needed = sum(tensors[name].at(maximum) for name in alive)
        if needed > most:
            best, most = sorted(alive), needed
        alive = {name for name in alive if last.get(name, index) > index}
    return best


def _tensors(graph: onnx.GraphProto, known: Mapping[str, int]) -> dict[str, _Tensor]:
    """Everything but weights and constants, by name."""
    fixed = {item.name for item in graph.initializer}
    fixed |= {name for node in graph.node if node.op_type == "Constant" for name in node.output}
    made = {name: _UNKNOWN for node in graph.node for name in node.output if name}
    told = {
        item.name: _sized(item.type.tensor_type, known)
        for item in (*graph.input, *graph.value_info, *graph.output)
    }
    return {name: item for name, item in (made | told).items() if name not in fixed}


def _sized(kind: onnx.TypeProto.Tensor, known: Mapping[str, int]) -> _Tensor:
    if not kind.elem_type:  # a sequence or a map
        return _UNKNOWN
    each = float(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).itemsize)
    powers: Counter[str] = Counter()
    sized = kind.HasField("shape")
    for dim in kind.shape.dim:
        if dim.HasField("dim_value"):
            each *= max(1, dim.dim_value)
        elif dim.dim_param in known:
            powers[dim.dim_param] += 1
        else:
            sized = False
    return _Tensor(
        each, tuple((name, float(power)) for name, power in sorted(powers.items())), sized
    )


def _last_uses(graph: onnx.GraphProto) -> dict[str, int]:
    """The last node that reads each value; the graph's own inputs and outputs stay to the end."""
    last = {name: index for index, node in enumerate(graph.node) for name in _read(node)}
    end = len(graph.node)
    return last | {item.name: end for item in (*graph.input, *graph.output)}


def _read(node: onnx.NodeProto) -> list[str]:
    """What a node reads, and what the graphs inside it read from outside."""
    names = list(node.input)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            names += [name for inner in graph.node for name in _read(inner)]
            names += [item.name for item in graph.output]
    return names
