"""Configuration of a chain for token classification, in the format of transformers."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, ClassVar

from transformers import AutoConfig, PretrainedConfig

from linearcore.forms import FORMS
from linearcore.heads import ChainHead
from linearcore.structures import Cost
from linearcore.tagging._heads import ChainSettings, check_fraction

_OPTIONS = tuple(option.name for option in fields(ChainSettings))


class ChainConfig(PretrainedConfig):
    """Configuration of an encoder and the chain head on top of it. Unknown options are errors.

    Args:
        encoder: the configuration of the encoder, or a dictionary of it with its `model_type`.
        dropout: dropout of the hidden states.
        others: the loss and the options of its head, as in `linearcore.tagging.ChainSettings` (loss, rank, unary, sharpness,
            beam, constraints, cost, surrogate, form, normalize), and those of PretrainedConfig (num_labels, id2label, …).

    Raises:
        TypeError, ValueError: if an option is unknown, or the loss does not accept it.

    Example:
        >>> config = ChainConfig(loss="crf", num_labels=3, id2label={0: "O", 1: "B-X", 2: "I-X"}, constraints="bio")
        >>> config.head()
        ChainCRF(num_tags=3, batch_first=True, constrained)
    """

    model_type = "linearcore-chain"
    # Attributes that are configurations; transformers passes the attention implementation on to them.
    sub_configs: ClassVar[dict[str, Any]] = {"encoder": AutoConfig}

    def __init__(
        self, encoder: PretrainedConfig | Mapping[str, Any] | None = None, dropout: float = 0.1, **others: Any
    ) -> None:
        settings = ChainSettings(**{name: others.pop(name) for name in _OPTIONS if name in others})
        check_fraction("dropout", dropout)
        # Before `encoder` is set, because it would overwrite the encoder's attention implementation.
        super().__init__(**others)
        self.encoder: PretrainedConfig | None = AutoConfig.for_model(**encoder) if isinstance(encoder, Mapping) else encoder
        self.dropout = dropout
        for name, value in asdict(settings).items():
            setattr(self, name, value)

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> "ChainConfig":
        """Returns the configuration, as in transformers. A form without `normalize`, from an earlier version, is a sum."""
        if config_dict.get("form") is not None:
            config_dict = {"normalize": False, **config_dict}
        config: ChainConfig = super().from_dict(config_dict, **kwargs)
        return config

    def to_dict(self) -> dict[str, Any]:
        """Returns a dictionary, as in transformers, that always has `normalize`, so a new default has no effect on it."""
        values: dict[str, Any] = super().to_dict()
        if values.get("form") is not None and values.get("normalize") is None:
            values["normalize"] = FORMS[values["form"]].is_mean
        return values

    @property
    def settings(self) -> ChainSettings:
        """The loss and the options of its head."""
        return ChainSettings(**{name: getattr(self, name) for name in _OPTIONS})

    @property
    def labels(self) -> list[str]:
        """The names of the labels, in the order of their indices."""
        return [self.id2label[index] for index in range(self.num_labels)]

    @property
    def beam_width(self) -> int:
        """Beam width of the decoder; 0 is exact search."""
        return self.settings.beam_width(self.num_labels)

    def cost_of_labels(self) -> Cost | None:
        """Returns the cost to train for, or None."""
        return self.settings.make_cost(self.labels)

    def head(self) -> ChainHead | None:
        """Returns a new head, or None for token cross-entropy.

        Any position may be masked out, such as [CLS]. Labels are validated: labels out of range raise an error.
        """
        return self.settings.make_head(self.labels, strict_mask=False)
