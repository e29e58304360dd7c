"""From a recording's features to text: greedy decoding over a decoder engine.

The decoder is stateless: the whole prefix goes in, the scores of the next token come out. The loop
holds no clock and no thread, so the gateway, the release and the tests drive the same.
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
from validators.contracts.encoder import EncoderContract, PreprocessSpec
from validators.contracts.errors import BadInput, Unsupported
from validators.contracts.ports import RunningEngine, Tensors
from validators.contracts.tensors import Meaning, TensorSpec

Transcribe = Callable[[Tensors, Callable[[], None]], str]
"""A speech encoder's outputs, and a call between steps that raises when time is up → text."""

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
    """One recording's features → its text. `memory` are the decoder's inputs from the encoder."""

    engine: RunningEngine
    tokenizer: Tokenizer
    rules: DecodingRules
    tokens: str
    memory: tuple[str, ...]
    logits: str

    def __call__(self, features: Tensors, require_time: Callable[[], None]) -> str:
        """`features` are the speech encoder's outputs by name, a batch of one.

        Raises:
            BadInput: a feature that the decoder needs is missing, or its scores are not finite.
            Whatever `require_time` raises, before the step that would be too late.
        """
        feeds = {name: _feature(features, name) for name in self.memory}

        def next_scores(prefix: tuple[int, ...]) -> Scores:
            require_time()
            feeds[self.tokens] = np.array([prefix], np.int64)
            logits = self.engine.run(feeds)[self.logits]
            return np.asarray(logits[0] if logits.ndim == 2 else logits[0, -1])

        tokens = decode_greedy(next_scores, self.rules)
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=True)
        return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class DecoderInput:
    """Stands where other encoders have a preprocessor: a decoder reads no raw input."""

    def __call__(self, raw: object) -> dict[str, npt.NDArray[Any]]:
        raise Unsupported(
            f"a decoder was given {type(raw).__name__}",
            where="preprocess.kind",
            remedy="Send the recording to the speech encoder; its features come here.",
        )


def make_decoder_input(spec: PreprocessSpec, read_asset: Callable[[Digest], bytes]) -> DecoderInput:
    """The stand-in of kind `transcript`, once the spec is seen to make a transcriber."""
    _read_spec(spec, read_asset)
    return DecoderInput()


def make_transcriber(
    contract: EncoderContract, engine: RunningEngine, read_asset: Callable[[Digest], bytes]
) -> Transcriber:
    """The transcriber of a decoder, whose contract's preprocessing is of kind `transcript`.

    The input that means token ids takes the prefix, the output that means logits gives the scores
    of the next token [1, vocabulary] (or of all, [1, tokens, vocabulary]); every other input is an
    output of the speech encoder with the same name.

    Options: prompt (special tokens, with spaces), end, max_tokens; asset `tokenizer` (tokenizers
    JSON).

    Raises:
        Unsupported: another kind, or not exactly one such input and output.
        BadInput: an ill-typed option, or a token that the tokenizer does not have.
    """
    tokenizer, rules = _read_spec(contract.preprocess, read_asset)
    tokens = _only(contract.inputs, Meaning.TOKEN_IDS, contract.name)
    return Transcriber(
        engine=engine,
        tokenizer=tokenizer,
        rules=rules,
        tokens=tokens,
        memory=tuple(item.name for item in contract.inputs if item.name != tokens),
        logits=_only(contract.outputs, Meaning.LOGITS, contract.name),
    )


def _read_spec(
    spec: PreprocessSpec, read_asset: Callable[[Digest], bytes]
) -> tuple[Tokenizer, DecodingRules]:
    if spec.kind != "transcript":
        raise Unsupported(
            f"a decoder's preprocessing is of kind {spec.kind!r}",
            where="preprocess.kind",
            remedy="Write kind: transcript.",
        )
    options = read_options(spec, ("prompt", "end", "max_tokens"))
    tokenizer = load_tokenizer(read_asset(spec.asset("tokenizer")))
    return tokenizer, _rules(options, tokenizer)


def _only(specs: tuple[TensorSpec, ...], meaning: Meaning, decoder: str) -> str:
    names = [spec.name for spec in specs if spec.meaning is meaning]
    if len(names) != 1:
        raise Unsupported(
            f"the decoder {decoder} has {len(names)} tensors that mean {meaning.value}",
            where=decoder,
            remedy="Declare exactly one.",
        )
    return names[0]


def _feature(features: Tensors, name: str) -> npt.NDArray[Any]:
    if name not in features:
        raise BadInput(
            f"the decoder reads {name!r}, which the speech encoder does not give",
            where=name,
            remedy="Give the encoder's output and the decoder's input one name.",
        )
    return features[name]


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
