"""Encoders that compute hidden states of words: `BiLSTM`, `TransformerEncoder`, and their base class `Encoder`.

`spelling` and `cut_into_rows` compute their inputs without torch.
"""

from typing import TYPE_CHECKING, Any

from linearcore._checks import one_of
from linearcore.tagging.encoders._bilstm import BiLSTM
from linearcore.tagging.encoders._cutting import cut_into_rows
from linearcore.tagging.encoders._encoder import Encoder, WordFeatures
from linearcore.tagging.encoders._spelling import spelling

if TYPE_CHECKING:
    from linearcore.tagging.encoders._transformer import TransformerEncoder

__all__ = ["BiLSTM", "Encoder", "TransformerEncoder", "WordFeatures", "cut_into_rows", "encoder_class", "spelling"]


def encoder_class(kind: str) -> type[Encoder]:
    """Returns the encoder class for its name in saved models.

    Raises:
        ValueError: if the name is unknown.
    """
    one_of("encoder", kind, ("bilstm", "transformer"))
    encoder: type[Encoder] = BiLSTM if kind == BiLSTM.kind else __getattr__("TransformerEncoder")
    return encoder


def __getattr__(name: str) -> Any:
    # transformers is an optional dependency and takes seconds to import.
    if name == "TransformerEncoder":
        from linearcore.tagging.encoders._transformer import TransformerEncoder

        return TransformerEncoder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
