"""One profile more, for a shape that an engine does not cover. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.engines.profiles.bounds import bounds_of, shape_profile, symbolic_dims
from validators.contracts.engine import ShapeProfile
from validators.contracts.errors import BadInput, TooLarge
from validators.contracts.tensors import TensorSpec

MAX_PROFILES = 16
"""Of one engine: each is compiled, verified at its corners and looked through on every request."""


def covers_sizes(
    inputs: Sequence[TensorSpec], profiles: Sequence[ShapeProfile], sizes: Mapping[str, int]
) -> bool:
    """Whether one of the profiles covers inputs of these sizes."""
    shapes = {
        spec.name: tuple(dim if isinstance(dim, int) else sizes[dim] for dim in spec.shape)
        for spec in inputs
    }
    return any(profile.covers(shapes) for profile in profiles)


def extend_profiles(
    inputs: Sequence[TensorSpec],
    profiles: Sequence[ShapeProfile],
    sizes: Mapping[str, int],
    declared: ShapeProfile | None = None,
) -> tuple[ShapeProfile, ...]:
    """The profiles with one more that ends at `sizes` and is tuned for them.

    It starts where the encoder starts: at the least size of each dimension that a profile has. The
    profiles that are there stay first, so that the canary's inputs stay the same. What is covered
    already gets no profile.

    Args:
        declared: the bounds that nothing may leave (`profiles: auto`), where there are any.

    Raises:
        BadInput: sizes of other dimensions than the inputs have, or outside `declared`.
        TooLarge: the engine has MAX_PROFILES already.
    """
    _check_names(inputs, sizes)
    if covers_sizes(inputs, profiles, sizes):
        return tuple(profiles)
    if declared is not None:
        _check_bounds(inputs, declared, sizes)
    if len(profiles) >= MAX_PROFILES:
        raise TooLarge(
            f"the engine has {len(profiles)} profiles already",
            where=_describe(sizes),
            remedy="Release again with profiles: auto, which plans them from what was served.",
        )
    least = dict(sizes)
    for profile in profiles:
        for bound in bounds_of(inputs, profile):
            least[bound.name] = min(least[bound.name], bound.minimum)
    return (*profiles, shape_profile(inputs, least, sizes, sizes))


def _check_names(inputs: Sequence[TensorSpec], sizes: Mapping[str, int]) -> None:
    names = symbolic_dims(inputs)
    if set(sizes) != set(names):
        raise BadInput(
            "the request's dimensions are not those of the encoder",
            where=_describe(sizes) or "none",
            remedy=f"Ask for sizes of: {', '.join(names) or 'nothing, its shape is fixed'}.",
        )


def _check_bounds(
    inputs: Sequence[TensorSpec], declared: ShapeProfile, sizes: Mapping[str, int]
) -> None:
    for bound in bounds_of(inputs, declared):
        if not bound.minimum <= sizes[bound.name] <= bound.maximum:
            raise BadInput(
                f"{bound.name} {sizes[bound.name]} is outside {bound.minimum} to {bound.maximum}, "
                "which the pipeline declares",
                where=_describe(sizes),
                remedy="Send smaller requests, or release with wider bounds.",
            )


def _describe(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {size}" for name, size in sizes.items())
