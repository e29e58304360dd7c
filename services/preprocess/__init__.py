"""Raw media, text and tensors into the inputs that encoders declare; token ids back into text.

`make_preprocessor` builds the callable that a contract's `PreprocessSpec` describes; `media`
decodes pictures and recordings within bounds; `transcript` turns a decoder's token ids into text.
"""

from services.preprocess.preprocessor import Preprocessor, RawInput, make_preprocessor
from services.preprocess.transcript import Transcribe, make_transcriber

__all__ = ["Preprocessor", "RawInput", "Transcribe", "make_preprocessor", "make_transcriber"]
