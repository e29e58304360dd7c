"""Builds a plan: strongly typed network, the parser's errors by name, profiles, fixed settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

from services.children.phases import Phases
from services.engines.precision import require_carried
from validators.contracts.engine import EngineSpec
from validators.contracts.errors import BadInput, Unsupported

FLAGS = {
    "tf32": ("on", "off"),
    "optimization_level": ("0", "1", "2", "3", "4", "5"),
}
"""`tf32` is off unless asked for: with it, fp32 matrix products round to 10 bits of mantissa."""


def build_plan(
    trt: Any,
    spec: EngineSpec,
    onnx_path: Path,
    phases: Phases,
    *,
    capabilities: Sequence[str] = (),
) -> bytes:
    """The serialised plan. `capabilities` are SM names to compile for ahead of time.

    Raises:
        BadInput: the parser names nodes it cannot take, or a profile does not fit.
        Unsupported: a precision that the model does not carry, or no plan for these targets.
    """
    logger = _make_logger(trt)
    with phases.phase("parse"):
        data = onnx_path.read_bytes()
        require_carried(onnx.load_model_from_string(data), spec.precision, spec.backend)
        builder = trt.Builder(logger)
        # In 11.x every network is strongly typed and the flag is accepted; RTX asks for it.
        strongly_typed = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
        network = builder.create_network(strongly_typed)
        parser = trt.OnnxParser(network, logger)
        if not parser.parse(data):
            raise _unparsed(parser, spec)
    config = _configure(trt, builder, spec)
    _add_profiles(builder, config, spec)
    _set_capabilities(trt, config, capabilities, spec)
    with phases.phase("compile"):
        plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise Unsupported(
            f"{spec.backend} gave no plan: {logger.last_error[:300] or 'no reason given'}",
            where=f"{spec.encoder} for {spec.target.name}",
            remedy="Read the build log; simplify the model or choose another target.",
        )
    with phases.phase("serialise"):
        return bytes(plan)


def _make_logger(trt: Any) -> Any:
    """A logger of the package's own base class: prints warnings and errors, keeps the last error.

    The class can only exist once the package is imported, hence inside a function.
    """

    class Logger(trt.ILogger):  # type: ignore[misc]  # the base is known at run time only
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.last_error = ""

        def log(self, severity: Any, message: str) -> None:
            if severity <= trt.ILogger.WARNING:
                print(f"{severity}: {message}", flush=True)
            if severity <= trt.ILogger.ERROR:
                self.last_error = message

    return Logger()


def _unparsed(parser: Any, spec: EngineSpec) -> BadInput:
    errors = [parser.get_error(index) for index in range(parser.num_errors)]
    named = [
        f"{error.node_operator() or 'graph'} ({error.node_name() or 'unnamed'}): "
        f"{error.desc().strip()[:160]}"
        for error in errors[:5]
    ]
    return BadInput(
        f"{spec.backend} cannot parse the model: {'; '.join(named) or 'no reason given'}",
        where=spec.encoder,
        remedy="Replace these operators, or build this encoder with another backend.",
    )


def _configure(trt: Any, builder: Any, spec: EngineSpec) -> Any:
    config = builder.create_builder_config()
    flags = dict(spec.flags)
    config.set_flag(trt.BuilderFlag.DISABLE_TIMING_CACHE)  # nothing leaks between builds
    if flags.get("tf32", "off") == "on":
        config.set_flag(trt.BuilderFlag.TF32)
    else:
        config.clear_flag(trt.BuilderFlag.TF32)
    if "optimization_level" in flags:
        config.builder_optimization_level = int(flags["optimization_level"])
    # a plan needs no description of its layers to run
    config.profiling_verbosity = trt.ProfilingVerbosity.NONE
    return config


def _add_profiles(builder: Any, config: Any, spec: EngineSpec) -> None:
    for index, profile in enumerate(spec.profiles):
        made = builder.create_optimization_profile()
        for item in profile.ranges:
            made.set_shape(item.tensor, item.minimum, item.optimum, item.maximum)
        if config.add_optimization_profile(made) < 0:
            raise BadInput(
                f"{spec.backend} does not accept profile {index}",
                where=spec.encoder,
                remedy="Give every dynamic input a range that fits the model.",
            )


def _set_capabilities(trt: Any, config: Any, names: Sequence[str], spec: EngineSpec) -> None:
    if not names:
        return
    config.num_compute_capabilities = len(names)
    for index, name in enumerate(names):
        if not config.set_compute_capability(getattr(trt.ComputeCapability, name), index):
            raise Unsupported(
                f"{spec.backend} cannot compile for {name}", where=spec.encoder,
                remedy="Leave this target out.",
            )  # fmt: skip
