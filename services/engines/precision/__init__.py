"""Which precision an ONNX model carries, and how another one is baked into it.

carried.py      what a model carries by itself
bake.py         bake a precision into a checked ONNX, in a child process
recipe.py       what the child does: from fp32 to fp16, bf16, int8 or int4
typed.py        fp16 and bf16 by casts; quantised.py: int8 by Q/DQ; packed.py: int4 weights
calibration.py  whether calibration data can be what the contract says
sensitivity.py  which layers go back to float; deviations.py: how far a candidate is
computed.py     what a compiler really computed, layer by layer
"""

from services.engines.precision.carried import (
    QUANTISED_OPERATORS,
    carried_precision,
    require_carried,
)

__all__ = ["QUANTISED_OPERATORS", "carried_precision", "require_carried"]
