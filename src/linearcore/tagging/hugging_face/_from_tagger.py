"""A trained tagger as Hugging Face model."""

from copy import deepcopy
from typing import TYPE_CHECKING

from transformers import PreTrainedTokenizerFast

from linearcore._checks import complaint
from linearcore.tagging._composition import plain_copy
from linearcore.tagging.encoders import TransformerEncoder
from linearcore.tagging.hugging_face._config import ChainConfig
from linearcore.tagging.hugging_face._model import ChainForTokenClassification

if TYPE_CHECKING:
    from linearcore.tagging._tagger import Tagger


def from_tagger(tagger: "Tagger") -> tuple[ChainForTokenClassification, PreTrainedTokenizerFast]:
    """Returns a copy of a tagger as `ChainForTokenClassification` on the CPU, and its tokenizer.

    The model predicts the tags of `Tagger.tag` if the words that it finds in a text are those that the tagger is given, and
    the text is not longer than the encoder's number of positions; the tagger splits longer sentences, the model does not.

        model, tokenizer = from_tagger(tagger)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)

    Args:
        tagger: a tagger whose encoder is a transformer.

    Raises:
        ValueError: if the encoder is not a transformer, or its tokenizer does not show where words start.
    """
    encoder = tagger.model.encoder
    if not isinstance(encoder, TransformerEncoder):
        advice = "use `tagger.export`, or train with `--encoder transformer:PATH`; Hugging Face models need a tokenizer"
        raise ValueError(complaint("tagger", "have a transformer as encoder", repr(encoder.kind), advice))
    labels = dict(enumerate(tagger.vocabulary.tags))
    config = ChainConfig(
        deepcopy(encoder.model.config),
        dropout=0.0,
        id2label=labels,
        label2id={label: number for number, label in labels.items()},
        **tagger.model.settings(),
    )
    model = ChainForTokenClassification(config, deepcopy(encoder.model))
    model.projection.load_state_dict(plain_copy(tagger.model.projection).state_dict())
    if model.head is not None and tagger.model.head is not None:
        model.head.load_state_dict(plain_copy(tagger.model.head).state_dict())
    model = model.cpu().eval()
    tokenizer = deepcopy(encoder.tokenizer)
    if encoder.max_length is not None:
        tokenizer.model_max_length = encoder.max_length
    model.use_tokenizer(tokenizer)
    return model, tokenizer
