"""The weights of an int8 ONNX export of MiniLM, under the names of the original checkpoint.

The export keeps each large tensor as int8 `NAME_q` with a scale `NAME_scale`. Exporters lose the
names of matrix weights but not of the biases added after them: a weight is named by its bias.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor

from validators.contracts.errors import Refused, TooLarge

MAX_FILE_BYTES = 256 * 1024 * 1024
_PREFIX = "inner."

Arrays = dict[str, npt.NDArray[Any]]


def read_checkpoint(path: Path) -> dict[str, Tensor]:
    """Float32 tensors, as rounded by the int8 export.

    Raises:
        TooLarge: more than MAX_FILE_BYTES.  Refused: the graph does not read as described above.
    """
    if path.stat().st_size > MAX_FILE_BYTES:
        raise TooLarge("the model file is too large", where=path.name)
    graph = onnx.load(path).graph
    arrays = _dequantise({item.name: numpy_helper.to_array(item) for item in graph.initializer})
    named = {name: array for name, array in arrays.items() if name.startswith(_PREFIX)}
    products = {node.output[0]: node for node in graph.node if node.op_type == "MatMul"}
    for node in graph.node:
        sides = list(node.input)
        bias = next((side for side in sides if side in named and side.endswith(".bias")), None)
        product = next((products[side] for side in sides if side in products), None)
        if node.op_type == "Add" and bias is not None and product is not None:
            weight = bias.removesuffix("bias") + "weight"
            if product.input[1] not in arrays:
                raise Refused(f"the weight that goes with {bias} is computed", where=path.name)
            named[weight] = arrays[product.input[1]].T
    return {
        name.removeprefix(_PREFIX): torch.from_numpy(np.array(array, np.float32, order="C"))
        for name, array in named.items()
    }


def _dequantise(stored: Arrays) -> Arrays:
    arrays: Arrays = {}
    for name, array in stored.items():
        whole = name.removesuffix("_q")
        scale = stored.get(f"{whole}_scale")
        if name.endswith("_q") and scale is not None:
            arrays[whole] = array.astype(np.float32) * scale
        elif not name.endswith("_scale"):
            arrays[name] = array
    return arrays
