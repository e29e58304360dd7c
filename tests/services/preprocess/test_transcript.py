from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.preprocess import make_preprocessor
from services.preprocess.transcript import DecodingRules, decode_greedy, loop_period
from tests.services.preprocess.samples import tokenizer_file
from validators.contracts.digest import Digest
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput, NotFound, Unsupported

RULES = DecodingRules(
    prompt=(90, 91), end=9, never=(8,), not_first=(9, 7), vocabulary=10, max_tokens=12
)


def favour(*tokens: int) -> np.ndarray:
    """Scores that like the first token most, then the second, and so on."""
    scores = np.full(12, -100.0, np.float32)
    for rank, token in enumerate(tokens):
        scores[token] = -rank
    return scores


def test_it_follows_the_best_scores_to_the_end_token() -> None:
    script = [favour(3), favour(1), favour(9)]
    assert decode_greedy(lambda prefix: script[len(prefix) - 2], RULES) == (3, 1)


def test_the_prefix_starts_with_the_prompt_and_grows_by_what_was_chosen() -> None:
    seen = []

    def scores(prefix: tuple[int, ...]) -> np.ndarray:
        seen.append(prefix)
        return favour(5) if len(seen) == 1 else favour(9)

    decode_greedy(scores, RULES)
    assert seen == [(90, 91), (90, 91, 5)]


@pytest.mark.parametrize(
    ("first", "chosen"),
    [((8, 2), 2), ((9, 2), 2), ((7, 2), 2), ((11, 2), 2)],
    ids=["never allowed", "an end before any word", "a lone space", "outside the vocabulary"],
)
def test_what_is_no_text_is_passed_over(first: tuple[int, ...], chosen: int) -> None:
    script = [favour(*first), favour(9)]
    assert decode_greedy(lambda prefix: script[len(prefix) - 2], RULES) == (chosen,)


def test_it_stops_at_the_bound() -> None:
    tokens = decode_greedy(lambda prefix: favour((len(prefix) * 3) % 7), RULES)
    assert len(tokens) == RULES.max_tokens - len(RULES.prompt)


def test_a_loop_is_cut_to_one_turn() -> None:
    assert decode_greedy(lambda prefix: favour(4 + len(prefix) % 2), RULES) == (4, 5)


def test_scores_without_a_finite_choice_are_refused() -> None:
    with pytest.raises(BadInput, match="finite"):
        decode_greedy(lambda prefix: np.full(12, np.nan, np.float32), RULES)


@given(st.lists(st.integers(0, 3), max_size=30).map(tuple), st.integers(2, 4))
def test_a_period_is_found_only_where_the_tail_repeats(tokens: tuple[int, ...], turns: int) -> None:
    period = loop_period(tokens, turns)
    if period:
        tail = tokens[-period * turns :]
        assert all(tail[i] == tail[i % period] for i in range(len(tail)))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8).map(tuple), st.integers(2, 4))
def test_every_group_that_comes_often_enough_is_found(group: tuple[int, ...], turns: int) -> None:
    assert 1 <= loop_period(group * turns, turns) <= len(group)


@given(st.randoms(use_true_random=False))
def test_decoding_always_ends_within_the_bound(random: object) -> None:
    generator = np.random.default_rng(random.getrandbits(32))  # type: ignore[attr-defined]
    tokens = decode_greedy(lambda prefix: generator.normal(size=12), RULES)
    assert len(tokens) <= RULES.max_tokens - len(RULES.prompt)
    assert not set(tokens) & {8, 9, 10, 11}


def test_a_decoder_has_no_raw_input_and_needs_its_tokenizer() -> None:
    with pytest.raises(NotFound, match="tokenizer"):
        make_preprocessor(PreprocessSpec("transcript"), lambda digest: b"")


def test_a_tokenizer_without_the_special_tokens_is_refused() -> None:
    spec = PreprocessSpec("transcript", (), (("tokenizer", Digest("sha256:" + "0" * 64)),))
    with pytest.raises(BadInput, match="endoftext"):
        make_preprocessor(spec, lambda digest: tokenizer_file())


def test_a_decoder_given_raw_input_says_where_it_belongs() -> None:
    options = (("end", "[SEP]"), ("prompt", "[CLS]"))
    spec = PreprocessSpec("transcript", options, (("tokenizer", Digest("sha256:" + "0" * 64)),))
    preprocess = make_preprocessor(spec, lambda digest: tokenizer_file())
    with pytest.raises(Unsupported, match="speech encoder"):
        preprocess("a text")
