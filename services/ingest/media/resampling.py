"""Resampling by a rational factor, block by block, as if the whole had been there at once.

A polyphase filter with the window of scipy.signal.resample_poly (Kaiser, beta 5, half-length 10
times the larger factor). Output m stands for input time m * down / up: n inputs give exactly
ceil(n * up / down) outputs, so the error of the length stays below one sample however long it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import cast

import numpy as np
import numpy.typing as npt
from scipy import signal

from validators.contracts.errors import Unsupported

Samples = npt.NDArray[np.float32]

MAX_FACTOR = 200_000
"""Of either factor: the filter has 20 times as many taps."""

_HALF_LENGTH = 10
_WINDOW = ("kaiser", 5.0)


def outputs_of(inputs: int, up: int, down: int) -> int:
    """How many outputs n inputs give: ceil(n * up / down)."""
    return -(-inputs * up // down)


class Resampler:
    """Mono float32 in at `source_hz`, out at `target_hz`.

    Raises:
        Unsupported: rates whose ratio needs a factor above MAX_FACTOR.
    """

    def __init__(self, source_hz: Fraction | int, target_hz: Fraction | int) -> None:
        ratio = Fraction(target_hz) / Fraction(source_hz) if source_hz > 0 else Fraction(0)
        self.up, self.down = ratio.numerator, ratio.denominator
        if not 0 < self.up <= MAX_FACTOR or self.down > MAX_FACTOR:
            raise Unsupported(
                f"sampling rates of ratio {self.up}/{self.down} are not resampled",
                where="audio",
                remedy="Record at an ordinary rate, such as 16000, 44100 or 48000 Hz.",
            )
        self._half = _HALF_LENGTH * max(self.up, self.down)
        # The filter reaches `margin` inputs to each side. Blocks begin at multiples of `down`
        # inputs, which are outputs: so the phases of the filter are the same in each of them.
        self._margin = -(-self._half // (self.up * self.down)) * self.down
        self._taps = self._design()
        self._held = np.zeros(self._margin, dtype=np.float32)  # from `margin` before `_at` on
        self._at = 0  # inputs whose outputs have been given, a multiple of `down`
        self._inputs = 0
        self._outputs = 0

    def push(self, samples: Samples) -> Samples:
        """The outputs that no later input can change."""
        self._inputs += len(samples)
        if self.up == self.down:
            self._outputs += len(samples)
            return samples
        self._held = np.concatenate([self._held, samples])
        ready = len(self._held) - 2 * self._margin
        ready -= ready % self.down
        if ready <= 0:
            return np.zeros(0, dtype=np.float32)
        return self._give(ready, ready * self.up // self.down)

    def finish(self) -> Samples:
        """The rest: the input is taken as followed by silence."""
        rest = outputs_of(self._inputs, self.up, self.down) - self._outputs
        if rest <= 0:
            return np.zeros(0, dtype=np.float32)
        missing = self._inputs - self._at
        pad = np.zeros(self._margin, dtype=np.float32)
        self._held = np.concatenate([self._held, pad])
        return self._give(missing, rest)

    def _give(self, inputs: int, outputs: int) -> Samples:
        """Outputs for the next `inputs` inputs, whose margins are both held."""
        segment = self._held[: inputs + 2 * self._margin]
        skipped = (self._margin * self.up + self._half) // self.down
        raw = signal.upfirdn(self._taps, segment, self.up, self.down)
        self._held = self._held[inputs:].copy()
        self._at += inputs
        self._outputs += outputs
        return cast(Samples, raw[skipped : skipped + outputs].astype(np.float32, copy=False))

    def _design(self) -> Samples:
        if self.up == self.down:
            return np.ones(1, dtype=np.float32)
        rate = max(self.up, self.down)
        taps = signal.firwin(2 * self._half + 1, 1 / rate, window=_WINDOW) * self.up
        # upfirdn keeps outputs at multiples of `down`: the delay has to be one of them.
        late = -self._half % self.down
        self._half += late
        return np.concatenate([np.zeros(late), taps]).astype(np.float32)


def resample_blocks(
    blocks: Iterator[Samples], source_hz: Fraction | int, target_hz: Fraction | int
) -> Iterator[Samples]:
    """Blocks of any lengths in, blocks of other lengths out, none of them empty.

    Raises: Unsupported, as `Resampler`.
    """
    resampler = Resampler(source_hz, target_hz)
    for block in blocks:
        if len(out := resampler.push(block)):
            yield out
    if len(out := resampler.finish()):
        yield out
