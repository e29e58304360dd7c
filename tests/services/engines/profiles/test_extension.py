from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.engines.profiles.extension import MAX_PROFILES, covers_sizes, extend_profiles
from tests.services.engines.models import IMAGE, IMAGE_PROFILES, TEXT, TEXT_PROFILES, profile
from validators.contracts.errors import BadInput, TooLarge

_BOUNDS = profile(("ids", (1, 2), (1, 8), (16, 64)), ("mask", (1, 2), (1, 8), (16, 64)))
_Sizes = st.fixed_dictionaries({"batch": st.integers(1, 64), "tokens": st.integers(1, 512)})


@given(_Sizes)
def test_the_extended_profiles_cover_the_request_and_all_they_covered(
    sizes: dict[str, int],
) -> None:
    extended = extend_profiles(TEXT.inputs, TEXT_PROFILES, sizes)
    assert covers_sizes(TEXT.inputs, extended, sizes)
    assert extended[: len(TEXT_PROFILES)] == TEXT_PROFILES
    assert extend_profiles(TEXT.inputs, extended, sizes) == extended


def test_the_new_profile_starts_where_the_encoder_starts_and_ends_at_the_request() -> None:
    *_, new = extend_profiles(TEXT.inputs, TEXT_PROFILES, {"batch": 4, "tokens": 64})
    (ids, mask) = new.ranges
    assert (ids.minimum, ids.optimum, ids.maximum) == ((1, 2), (4, 64), (4, 64))
    assert mask.maximum == (4, 64)


def test_what_is_covered_gets_no_profile() -> None:
    assert extend_profiles(IMAGE.inputs, IMAGE_PROFILES, {"batch": 8}) == IMAGE_PROFILES


@pytest.mark.parametrize("sizes", [{"batch": 17, "tokens": 8}, {"batch": 1, "tokens": 65}])
def test_a_request_outside_the_declared_bounds_is_refused_with_them(
    sizes: dict[str, int],
) -> None:
    with pytest.raises(BadInput, match="which the pipeline declares"):
        extend_profiles(TEXT.inputs, TEXT_PROFILES[1:], sizes, _BOUNDS)


@pytest.mark.parametrize("sizes", [{}, {"batch": 9, "frames": 3}, {"frames": 3}])
def test_dimensions_that_the_encoder_does_not_have_are_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="dimensions"):
        extend_profiles(IMAGE.inputs, IMAGE_PROFILES, sizes)


def test_an_engine_takes_no_more_than_so_many_profiles() -> None:
    profiles = IMAGE_PROFILES
    for batch in range(9, 9 + MAX_PROFILES - 1):
        profiles = extend_profiles(IMAGE.inputs, profiles, {"batch": batch})
    with pytest.raises(TooLarge, match="Release again"):
        extend_profiles(IMAGE.inputs, profiles, {"batch": 1000})
