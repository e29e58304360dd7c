"""Edits of an ONNX graph: strip what tells of where it was made, rename values, cut outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx
from onnx.utils import Extractor

MAX_MODEL_BYTES = 2**31 - 1
"""Protocol buffers hold no more."""


def serialise(model: onnx.ModelProto) -> bytes:
    """The same bytes for the same graph, in every process."""
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def strip_provenance(model: onnx.ModelProto) -> None:
    """Drop stack traces, file paths and comments: they differ between checkouts, not models."""
    del model.metadata_props[:]
    model.doc_string = ""
    for graph in graphs(model.graph):
        graph.doc_string = ""
        del graph.metadata_props[:]
        for item in _parts(graph):
            item.doc_string = ""
            del item.metadata_props[:]


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph and, depth first, every graph inside its nodes' attributes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node or inner.output:
                    yield from graphs(inner)


def rename_interface(model: onnx.ModelProto, names: Mapping[str, str]) -> None:
    """Rename inputs and outputs; an inner value of the wanted name makes room first.

    An output called like an inner value would leave a graph that assigns one name twice.
    """
    taken = set(_value_names(model))
    changes = dict(names)
    for wanted in names.values():
        if wanted in taken and wanted not in names:
            aside = wanted
            while aside in taken:
                aside += "_inner"
            taken.add(aside)
            changes[wanted] = aside
    for graph in graphs(model.graph):
        for node in graph.node:
            node.input[:] = [changes.get(name, name) for name in node.input]
            node.output[:] = [changes.get(name, name) for name in node.output]
        for item in _named(graph):
            item.name = changes.get(item.name, item.name)


def keep_outputs(model: onnx.ModelProto, outputs: Sequence[str]) -> onnx.ModelProto:
    """The model with these outputs only, in this order, and without the nodes nothing needs."""
    present = [item.name for item in model.graph.output]
    if present == list(outputs):
        return model
    inputs = [item.name for item in model.graph.input]
    kept = Extractor(model).extract_model(inputs, list(outputs))
    kept.ir_version = model.ir_version
    return kept


def _value_names(model: onnx.ModelProto) -> Iterator[str]:
    for graph in graphs(model.graph):
        for node in graph.node:
            yield from node.input
            yield from node.output
        for item in _named(graph):
            yield item.name


def _named(graph: onnx.GraphProto) -> list[Any]:
    """What has a value's name: protobuf gives these kinds no common type."""
    return [*graph.input, *graph.output, *graph.value_info, *graph.initializer]


def _parts(graph: onnx.GraphProto) -> list[Any]:
    return [*graph.node, *_named(graph)]
