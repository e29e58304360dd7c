"""From a recording's features to text: greedy decoding over a decoder that is only a callable.

The decoder is stateless: the whole prefix goes in, the scores of the next token come out. The loop
holds no engine, no clock and no thread, so the gateway, the release and the tests drive the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from services.preprocess.options import Options, read_options
from services.preprocess.wordpiece import load_tokenizer
from validators.contracts.digest import Digest
from validators.contracts.encoder import PreprocessSpec
from validators.contracts.errors import BadInput, Unsupported
from validators.contracts.ports import Tensors

Run = Callable[[Tensors], Tensors]
"""A decoder engine: tensors in, tensors out, by name (`RunningEngine.run`)."""

Scores = npt.NDArray[Any]
_MAX_TOKENS = 448


@dataclass(frozen=True, slots=True)
class DecodingRules:
    """What bounds greedy decoding. `never` are ids that are no text; `not_first` may not begin it.

    Ids from `vocabulary` on are no text either (time stamps, in Whisper's case).

    `max_tokens` bounds the whole prefix, prompt included: the longest that the engine accepts.
    """

    prompt: tuple[int, ...]
    end: int
    never: tuple[int, ...]
    not_first: tuple[int, ...]
    vocabulary: int
    max_tokens: int
    max_repeats: int = 3


def decode_greedy(
    next_scores: Callable[[tuple[int, ...]], Scores], rules: DecodingRules
) -> tuple[int, ...]:
    """The most probable next token, over and over, until the end token or a bound.

    `next_scores` maps a prefix to scores [vocabulary]. Stops as well where one token, or a group of
    up to 8, comes `max_repeats` times in a row: a decoder that loops has nothing more to say.

    Raises:
        BadInput: scores that are not finite anywhere they may be chosen.
    """
    text: tuple[int, ...] = ()
    while len(rules.prompt) + len(text) < rules.max_tokens:
        token = _best(next_scores(rules.prompt + text), rules, first=not text)
        if token == rules.end:
            break
        text += (token,)
        period = loop_period(text, rules.max_repeats)
        if period:
            return text[: len(text) - period * (rules.max_repeats - 1)]
    return text


def loop_period(tokens: tuple[int, ...], repeats: int, longest: int = 8) -> int:
    """The length of the group that the tokens end with `repeats` times in a row; 0 if none."""
    for period in range(1, longest + 1):
        tail = tokens[-period * repeats :]
        if len(tail) == period * repeats and tail == tail[:period] * repeats:
            return period
    return 0


@dataclass(frozen=True, slots=True)
class Transcriber:
    """Features of one recording and a decoder → its text."""

    tokenizer: Tokenizer
    rules: DecodingRules
    tokens: str
    features: str
    logits: str

    def __call__(self, features: npt.NDArray[Any], run: Run) -> str:
        """`features` as the speech encoder gave them, a batch of one.

        Raises:
            BadInput: the decoder refuses them, or answers with other than finite scores.
        """

        def next_scores(prefix: tuple[int, ...]) -> Scores:
            feeds = {self.tokens: np.array([prefix], np.int64), self.features: features}
            logits = run(feeds)[self.logits]
            return np.asarray(logits[0] if logits.ndim == 2 else logits[0, -1])

        tokens = decode_greedy(next_scores, self.rules)
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=True)
        return " ".join(text.split())


def make_transcriber(spec: PreprocessSpec, read_asset: Callable[[Digest], bytes]) -> Transcriber:
    """The transcriber of a decoder contract, whose preprocessing is of kind `transcript`.

    Options: tokens, features, logits (tensor names), prompt (special tokens, with spaces), end,
    max_tokens; asset `tokenizer` (tokenizers JSON).

    Raises:
        Unsupported: another kind.
        BadInput: an option, or a token that the tokenizer does not have.
    """
    if spec.kind != "transcript":
        raise Unsupported(
            f"a decoder's preprocessing is of kind {spec.kind!r}",
            where="preprocess.kind",
            remedy="Write kind: transcript.",
        )
    options = read_options(spec, ("tokens", "features", "logits", "prompt", "end", "max_tokens"))
    tokenizer = load_tokenizer(read_asset(spec.asset("tokenizer")))
    return Transcriber(
        tokenizer=tokenizer,
        rules=_rules(options, tokenizer),
        tokens=options.text("tokens", "tokens"),
        features=options.text("features", "features"),
        logits=options.text("logits", "logits"),
    )


def _rules(options: Options, tokenizer: Tokenizer) -> DecodingRules:
    prompt = options.text("prompt", "<|startoftranscript|> <|notimestamps|>").split()
    end = _token_id(tokenizer, options.text("end", "<|endoftext|>"))
    special = {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    return DecodingRules(
        prompt=tuple(_token_id(tokenizer, token) for token in prompt),
        end=end,
        never=tuple(sorted(special - {end})),
        # An utterance begins with a word: neither silence nor a lone space.
        not_first=(end, *tokenizer.encode(" ", add_special_tokens=False).ids),
        vocabulary=tokenizer.get_vocab_size(),
        max_tokens=options.integer("max_tokens", 32, len(prompt) + 1, _MAX_TOKENS),
    )


def _token_id(tokenizer: Tokenizer, token: str) -> int:
    found = tokenizer.token_to_id(token)
    if found is None:
        raise BadInput(
            f"the tokenizer has no token {token!r}",
            where="preprocess.options.prompt",
            remedy="Write special tokens of the decoder's own tokenizer.",
        )
    return int(found)


def _best(scores: Scores, rules: DecodingRules, *, first: bool) -> int:
    allowed = scores[: rules.vocabulary].astype(np.float32, copy=True)
    banned = rules.never + rules.not_first if first else rules.never
    allowed[[token for token in banned if token < allowed.size]] = -np.inf
    token = int(allowed.argmax())
    if not np.isfinite(allowed[token]):
        raise BadInput("the decoder's scores are not finite", remedy="Check the decoder's engine.")
    return token
