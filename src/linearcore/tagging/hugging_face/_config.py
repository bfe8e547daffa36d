"""What a chain for token classification is made of, as transformers saves it."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, ClassVar

from transformers import AutoConfig, PretrainedConfig

from linearcore.forms import FORMS
from linearcore.heads import ChainHead
from linearcore.tagging._heads import ChainSettings, check_share

_OPTIONS = tuple(option.name for option in fields(ChainSettings))


class ChainConfig(PretrainedConfig):
    """An encoder's configuration, and what stands on top of it. JSON in and out; no option is ignored.

    Args:
        encoder: the configuration of the encoder, or a dictionary of it with its `model_type`.
        dropout: of the hidden states.
        others: the loss and the options of its head, as in `linearcore.tagging.ChainSettings`: loss, rank, unary, sharpness,
            beam, surrogate, form, normalize, constraints; and those of every PretrainedConfig: num_labels, id2label, …

    Raises:
        TypeError, ValueError: if an option is none that there is, or is one that the loss has no use for.

    Example:
        >>> config = ChainConfig(loss="crf", num_labels=3, id2label={0: "O", 1: "B-X", 2: "I-X"}, constraints="bio")
        >>> config.head()
        ChainCRF(num_tags=3, batch_first=True, constrained)
    """

    model_type = "linearcore-chain"
    # Which attributes are configurations themselves: transformers hands on to them how attention is computed.
    sub_configs: ClassVar[dict[str, Any]] = {"encoder": AutoConfig}

    def __init__(
        self, encoder: PretrainedConfig | Mapping[str, Any] | None = None, dropout: float = 0.1, **others: Any
    ) -> None:
        given = {name: others.pop(name) for name in _OPTIONS if name in others}
        settings = ChainSettings(**given)
        check_share("dropout", dropout)
        # First: it says how attention is computed to the configurations in it, and would forget what the encoder says.
        super().__init__(**others)
        self.encoder: PretrainedConfig | None = AutoConfig.for_model(**encoder) if isinstance(encoder, Mapping) else encoder
        self.dropout = dropout
        for name, value in asdict(settings).items():
            setattr(self, name, value)

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> "ChainConfig":
        """As in transformers. A form without `normalize` was saved when a form's name meant the sum."""
        if config_dict.get("form") is not None:
            config_dict = {"normalize": False, **config_dict}
        found: ChainConfig = super().from_dict(config_dict, **kwargs)
        return found

    def to_dict(self) -> dict[str, Any]:
        """As in transformers, with `normalize` written out: what a name means may change, what was trained does not."""
        found: dict[str, Any] = super().to_dict()
        if found.get("form") is not None and found.get("normalize") is None:
            found["normalize"] = FORMS[found["form"]].is_mean
        return found

    @property
    def settings(self) -> ChainSettings:
        """The loss and the options of its head."""
        return ChainSettings(**{name: getattr(self, name) for name in _OPTIONS})

    @property
    def labels(self) -> list[str]:
        """The names of the labels, in the order of their indices."""
        return [self.id2label[index] for index in range(self.num_labels)]

    @property
    def width(self) -> int:
        """Of the beam that decodes; 0 is exact search."""
        return self.settings.width(self.num_labels)

    def head(self) -> ChainHead | None:
        """The head on top, with fresh scores; None for token cross-entropy.

        Any position may be off, as [CLS] is, and labels are looked at: wrong ones are an error and not a wrong number.
        """
        return self.settings.make_chain(self.labels, strict_mask=False)
