"""What a chain for token classification is made of, as transformers saves it."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from transformers import AutoConfig, PretrainedConfig

from linearcore._checks import complaint, one_of
from linearcore.heads import ChainHead, LinearCoreChain
from linearcore.structures import Constraints, bio, bioes, bmes
from linearcore.surrogates import LinearCore
from linearcore.tagging._model import BEAM, LOSSES, MOST_EXACT

#: Schemes of segments whose rules can be read off the names of the labels.
SCHEMES = {"bio": bio, "bioes": bioes, "bmes": bmes}


class ChainConfig(PretrainedConfig):
    """An encoder's configuration, and what stands on top of it. JSON in and out; no option is ignored.

    Args:
        encoder: the configuration of the encoder, or a dictionary of it with its `model_type`.
        loss: "lc" (`LinearCoreChain`), "crf" (`ChainCRF`), "ssvm" (`ChainSSVM`), or "ce", token cross-entropy, no chain.
        rank: of the transitions F Tᵀ; None is a full matrix.
        surrogate: of "lc": arguments of `LinearCore`, any of base (a name), tau, sides, sharpness; None is its defaults.
        form: of "lc": "logodds", "pairwise" or "centered"; None is "logodds".
        normalize: of "lc": the mean over the candidates (True) or their sum (False), as in `LinearCoreChain`; None is what
            the form's name means there. It is always saved; files of earlier versions have none and mean the sum.
        constraints: "bio", "bioes" or "bmes": the rules of that scheme, read off the labels, hold in training and decoding.
        dropout: of the hidden states.
        beam: width of the beam that decodes; 0 is exact search, None is exact for up to `MOST_EXACT` labels and `BEAM`
            above that.
        unary: of "lc": the share of the loss on the emissions alone, as in `LinearCoreChain`; None is 0.
        others: those of every PretrainedConfig: num_labels, id2label, label2id, …

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
        self,
        encoder: PretrainedConfig | Mapping[str, Any] | None = None,
        loss: str = "lc",
        rank: int | None = None,
        surrogate: Mapping[str, Any] | None = None,
        form: str | None = None,
        constraints: str | None = None,
        dropout: float = 0.1,
        beam: int | None = None,
        unary: float | None = None,
        normalize: bool | None = None,
        **others: Any,
    ) -> None:
        one_of("loss", loss, LOSSES)
        if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
            raise ValueError(complaint("dropout", "be a share in [0, 1)", repr(dropout), "for example 0.1"))
        # First: it says how attention is computed to the configurations in it, and would forget what the encoder says.
        super().__init__(**others)
        self.encoder: PretrainedConfig | None = AutoConfig.for_model(**encoder) if isinstance(encoder, Mapping) else encoder
        self.loss = loss
        self.rank = rank
        self.surrogate = None if surrogate is None else dict(surrogate)
        self.form = form
        self.constraints = constraints
        self.dropout = dropout
        self.beam = beam
        self.unary = unary
        self.normalize = normalize
        self._require_use()

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
        if self.form is not None and self.normalize is None:
            found["normalize"] = LinearCoreChain(2, **self._linear_core()).form.is_mean
        return found

    def _require_use(self) -> None:
        """Raises over an option that the loss would ignore, or whose value is none."""
        useful = {name: ["lc", "crf", "ssvm"] for name in ("rank", "constraints", "beam")}
        useful |= {name: ["lc"] for name in ("surrogate", "form", "unary", "normalize")}
        for name, losses in useful.items():
            if getattr(self, name) is not None and self.loss not in losses:
                must = f"be None for the loss {self.loss!r}"
                raise ValueError(complaint(name, must, repr(getattr(self, name)), f"it is for {', '.join(losses)}"))
        if self.constraints is not None:
            one_of("constraints", self.constraints, SCHEMES, "or None, for none")
        if self.beam is not None and (not isinstance(self.beam, int) or isinstance(self.beam, bool) or self.beam < 0):
            raise ValueError(complaint("beam", "be a width, or 0 for exact search", repr(self.beam), "for example 16"))
        known = ("base", "tau", "sides", "sharpness")
        for name in self.surrogate or ():
            one_of("surrogate", name, known, "pass arguments of linearcore.LinearCore")

    @property
    def labels(self) -> list[str]:
        """The names of the labels, in the order of their indices."""
        return [self.id2label[index] for index in range(self.num_labels)]

    @property
    def width(self) -> int:
        """Of the beam that decodes; 0 is exact search."""
        return (0 if self.num_labels <= MOST_EXACT else BEAM) if self.beam is None else self.beam

    def head(self) -> ChainHead | None:
        """The head on top, with fresh scores; None for token cross-entropy.

        Any position may be off, as [CLS] is, and labels are looked at: wrong ones are an error and not a wrong number.
        """
        make = LOSSES[self.loss]
        if make is None:
            return None
        options: dict[str, Any] = {"rank": self.rank, "constraints": self._rules(), "strict_mask": False}
        if make is LinearCoreChain:
            options |= self._linear_core()
        return make(self.num_labels, batch_first=True, **options)

    def _linear_core(self) -> dict[str, Any]:
        """What only `LinearCoreChain` takes."""
        return {
            "surrogate": LinearCore(**self.surrogate or {}),
            "form": self.form or "logodds",
            "normalize": self.normalize,
            "unary": self.unary or 0.0,
        }

    def _rules(self) -> Constraints | None:
        if self.constraints is None:
            return None
        # While weights are read, transformers makes new tensors on "meta", where rules cannot be checked.
        with torch.device("cpu"):
            return SCHEMES[self.constraints](self.labels)
