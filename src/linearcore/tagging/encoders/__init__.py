"""Networks that turn words into hidden states: `BiLSTM`, `TransformerEncoder`, and what a new one must have, `Encoder`."""

from typing import TYPE_CHECKING, Any

from linearcore._checks import one_of
from linearcore.tagging.encoders._bilstm import BiLSTM
from linearcore.tagging.encoders._encoder import Encoder, WordFeatures

if TYPE_CHECKING:
    from linearcore.tagging.encoders._transformer import TransformerEncoder

__all__ = ["BiLSTM", "Encoder", "TransformerEncoder", "WordFeatures", "encoder_class"]


def encoder_class(kind: str) -> type[Encoder]:
    """The encoder of that name in saved models.

    Raises:
        ValueError: if there is none.
    """
    one_of("encoder", kind, ("bilstm", "transformer"))
    found: type[Encoder] = BiLSTM if kind == BiLSTM.kind else __getattr__("TransformerEncoder")
    return found


def __getattr__(name: str) -> Any:
    # transformers takes seconds to import, and not everyone has it.
    if name == "TransformerEncoder":
        from linearcore.tagging.encoders._transformer import TransformerEncoder

        return TransformerEncoder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
