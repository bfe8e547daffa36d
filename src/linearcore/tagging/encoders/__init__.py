"""Encoders that compute hidden states of words: `BiLSTM`, `TransformerEncoder`, and their base class `Encoder`.

To add an encoder, write a subclass of `Encoder` in a file of its own and add it to `ENCODERS`. `spelling` and
`cut_into_rows` compute the inputs of the two encoders without torch.
"""

from linearcore._checks import one_of
from linearcore.tagging._schedule import Schedule
from linearcore.tagging.encoders._bilstm import BiLSTM
from linearcore.tagging.encoders._cutting import cut_into_rows
from linearcore.tagging.encoders._encoder import Encoder, WordFeatures, copy_leading_rows
from linearcore.tagging.encoders._spelling import spelling
from linearcore.tagging.encoders._transformer import TransformerEncoder

__all__ = [
    "ENCODERS",
    "BiLSTM",
    "Encoder",
    "Schedule",
    "TransformerEncoder",
    "WordFeatures",
    "copy_leading_rows",
    "cut_into_rows",
    "encoder_class",
    "spelling",
]

#: The encoders by name, on the command line and in saved models. The modules import optional packages on first use.
ENCODERS: dict[str, type[Encoder]] = {encoder.kind: encoder for encoder in (BiLSTM, TransformerEncoder)}


def encoder_class(kind: str) -> type[Encoder]:
    """Returns the encoder class for its name in saved models.

    Raises:
        ValueError: if the name is unknown.
    """
    one_of("encoder", kind, ENCODERS)
    return ENCODERS[kind]
