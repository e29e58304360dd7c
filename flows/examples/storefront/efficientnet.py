"""EfficientNet-Lite as a module for inference, with batch normalisation folded into convolutions.

"EfficientNet: Rethinking Model Scaling" (Tan and Le, 2019) without squeeze-and-excitation and with
ReLU6, as the Lite variants are defined. Padding is TensorFlow's SAME, which depends on the input
size; the size is fixed, so the padding is too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from validators.contracts.errors import Refused

BATCH_NORM_EPSILON = 1e-3
FEATURES = 1280
CLASSES = 1000


@dataclass(frozen=True, slots=True)
class Stage:
    """A run of inverted-residual blocks of one width; the first one strides."""

    repeats: int
    kernel: int
    stride: int
    expand: int
    channels: int


@dataclass(frozen=True, slots=True)
class Variant:
    size_px: int
    stages: tuple[Stage, ...]


def _stages(repeats: tuple[int, ...]) -> tuple[Stage, ...]:
    shapes = (
        (3, 1, 1, 16),
        (3, 2, 6, 24),
        (5, 2, 6, 40),
        (3, 2, 6, 80),
        (5, 1, 6, 112),
        (5, 2, 6, 192),
        (3, 1, 6, 320),
    )
    return tuple(Stage(n, *shape) for n, shape in zip(repeats, shapes, strict=True))


LITE0 = Variant(224, _stages((1, 2, 2, 3, 3, 4, 1)))
LITE1 = Variant(240, _stages((1, 3, 3, 4, 4, 5, 1)))


class _Convolution(nn.Module):
    """SAME-padded convolution with bias, and ReLU6 unless it projects."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, size_px: int, *,
        stride: int = 1, groups: int = 1, activate: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size_px = -(-size_px // stride)
        margin = max((self.size_px - 1) * stride + kernel - size_px, 0)
        before, after = margin // 2, margin - margin // 2
        self.pad = nn.ZeroPad2d((before, after, before, after)) if margin else nn.Identity()
        self.convolution = nn.Conv2d(inputs, outputs, kernel, stride, groups=groups)
        self.activation = nn.ReLU6() if activate else nn.Identity()

    def forward(self, planes: Tensor) -> Tensor:
        result: Tensor = self.activation(self.convolution(self.pad(planes)))
        return result

    def load(self, weights: _Weights, convolution: str, norm: str) -> None:
        """Take a convolution and the batch normalisation after it as one convolution."""
        gamma, beta = weights.take(f"{norm}.weight"), weights.take(f"{norm}.bias")
        mean, variance = weights.take(f"{norm}.running_mean"), weights.take(f"{norm}.running_var")
        gain = gamma / torch.sqrt(variance + BATCH_NORM_EPSILON)
        kernel = weights.take(f"{convolution}.weight") * gain[:, None, None, None]
        self.convolution.load_state_dict({"weight": kernel, "bias": beta - mean * gain})


class _Block(nn.Module):
    """Expand, filter each channel, project; add the input where the shape allows."""

    def __init__(self, inputs: int, stage: Stage, stride: int, size_px: int) -> None:
        super().__init__()
        inner = inputs * stage.expand
        self.expand = _Convolution(inputs, inner, 1, size_px) if stage.expand > 1 else None
        self.depthwise = _Convolution(
            inner, inner, stage.kernel, size_px, stride=stride, groups=inner
        )
        self.size_px = self.depthwise.size_px
        self.project = _Convolution(inner, stage.channels, 1, self.size_px, activate=False)
        self.residual = stride == 1 and inputs == stage.channels

    def forward(self, planes: Tensor) -> Tensor:
        inner = planes if self.expand is None else self.expand(planes)
        result: Tensor = self.project(self.depthwise(inner))
        return result + planes if self.residual else result

    def load(self, weights: _Weights, name: str) -> None:
        if self.expand is not None:
            self.expand.load(weights, f"{name}._expand_conv", f"{name}._bn0")
        self.depthwise.load(weights, f"{name}._depthwise_conv", f"{name}._bn1")
        self.project.load(weights, f"{name}._project_conv", f"{name}._bn2")


class EfficientNetLite(nn.Module):
    """Pixels [batch, 3, size, size] → features [batch, 1280], logits [batch, 1000].

    Pixels are (rgb - 127) / 128.

    Raises (on construction):
        Refused: the checkpoint is not of this variant, or holds more or less than its weights.
    """

    def __init__(self, variant: Variant, checkpoint: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.stem = _Convolution(3, 32, 3, variant.size_px, stride=2)
        blocks: list[_Block] = []
        channels, size_px = 32, self.stem.size_px
        for stage in variant.stages:
            for index in range(stage.repeats):
                block = _Block(channels, stage, stage.stride if index == 0 else 1, size_px)
                channels, size_px = stage.channels, block.size_px
                blocks.append(block)
        self.blocks = nn.ModuleList(blocks)
        self.head = _Convolution(channels, FEATURES, 1, size_px)
        self.classifier = nn.Linear(FEATURES, CLASSES)
        self._load(_Weights(checkpoint), blocks)
        self.eval().requires_grad_(False)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        planes = self.stem(pixels)
        for block in self.blocks:
            planes = block(planes)
        features = self.head(planes).mean((2, 3))
        return features, self.classifier(features)

    def _load(self, weights: _Weights, blocks: list[_Block]) -> None:
        try:
            self.stem.load(weights, "_conv_stem", "_bn0")
            for index, block in enumerate(blocks):
                block.load(weights, f"_blocks.{index}")
            self.head.load(weights, "_conv_head", "_bn1")
            self.classifier.load_state_dict(
                {"weight": weights.take("_fc.weight"), "bias": weights.take("_fc.bias")}
            )
        except (KeyError, RuntimeError) as error:
            raise Refused("the checkpoint is not of this variant", where=str(error)) from error
        weights.require_used_up()


class _Weights:
    """A checkpoint that knows what has been taken from it."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._left = {k: v for k, v in tensors.items() if not k.endswith("num_batches_tracked")}

    def take(self, name: str) -> Tensor:
        return self._left.pop(name)

    def require_used_up(self) -> None:
        if self._left:
            raise Refused(
                f"the checkpoint holds {len(self._left)} weights too many",
                where=next(iter(self._left)),
            )
