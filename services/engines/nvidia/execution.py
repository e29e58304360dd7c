"""Runs a plan on the GPU. Buffers and the stream are torch's; one execution at a time."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from services.engines.backends.protocol import Session
from validators.contracts.engine import EngineSpec
from validators.contracts.errors import Refused, Unavailable
from validators.contracts.ports import Tensors


class PlanSession:
    """A deserialised plan with one execution context, guarded by a lock."""

    def __init__(self, trt: Any, spec: EngineSpec, plan: bytes) -> None:
        self._torch = _torch_with_cuda()
        self._spec = spec
        self._lock = threading.Lock()
        self._logger = trt.Logger(trt.Logger.ERROR)
        self._runtime = trt.Runtime(self._logger)
        self._engine = self._runtime.deserialize_cuda_engine(plan)
        if self._engine is None:
            raise Refused(
                f"{spec.backend} does not take this plan",
                where=spec.encoder,
                remedy="Build it for this GPU with the installed version.",
            )
        self._context = self._engine.create_execution_context()
        if self._context is None:
            raise Unavailable("no execution context: the GPU is out of memory", where=spec.encoder)
        self._stream = self._torch.cuda.Stream()
        self._profile = -1
        names = [self._engine.get_tensor_name(i) for i in range(self._engine.num_io_tensors)]
        outputs = trt.TensorIOMode.OUTPUT
        self._outputs = [n for n in names if self._engine.get_tensor_mode(n) == outputs]
        self._types = {n: np.dtype(trt.nptype(self._engine.get_tensor_dtype(n))) for n in names}

    def infer(self, feeds: Tensors) -> dict[str, npt.NDArray[Any]]:
        with self._lock, self._torch.cuda.stream(self._stream):
            self._select_profile(feeds)
            buffers = {name: self._upload(name, array) for name, array in feeds.items()}
            missing = self._context.infer_shapes()
            if missing:
                raise Unavailable(f"shapes of {', '.join(missing)} are not known before it runs")
            answers = {name: self._reserve(name) for name in self._outputs}
            for name, buffer in (buffers | answers).items():
                self._context.set_tensor_address(name, buffer.data_ptr())
            if not self._context.execute_async_v3(self._stream.cuda_stream):
                raise Unavailable("the GPU did not run the plan", where=self._spec.encoder)
            self._stream.synchronize()
            return {name: buffer.cpu().numpy().copy() for name, buffer in answers.items()}

    def close(self) -> None:
        with self._lock:
            self._context = self._engine = self._runtime = None

    def _select_profile(self, feeds: Tensors) -> None:
        shapes = {name: array.shape for name, array in feeds.items()}
        index = next(i for i, profile in enumerate(self._spec.profiles) if profile.covers(shapes))
        if index != self._profile:
            self._context.set_optimization_profile_async(index, self._stream.cuda_stream)
            self._profile = index

    def _upload(self, name: str, array: npt.NDArray[Any]) -> Any:
        self._context.set_input_shape(name, array.shape)
        return self._torch.from_numpy(np.array(array, copy=True)).cuda(non_blocking=False)

    def _reserve(self, name: str) -> Any:
        shape = tuple(self._context.get_tensor_shape(name))
        sample = self._torch.from_numpy(np.empty(0, self._types[name]))
        return self._torch.empty(shape, dtype=sample.dtype, device="cuda")


def open_plan(trt: Any, spec: EngineSpec, plan: bytes) -> Session:
    return PlanSession(trt, spec, plan)


def _torch_with_cuda() -> Any:
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        raise Unavailable(
            "running a plan needs an NVIDIA GPU with its driver, and a torch built for CUDA",
            where="torch.cuda",
            remedy="Load it on a host that has them.",
        )
    return torch
