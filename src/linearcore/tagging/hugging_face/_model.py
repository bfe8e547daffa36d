"""An encoder of Hugging Face with a chain on top."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForTokenClassification, PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import TokenClassifierOutput

from linearcore._checks import complaint
from linearcore._typing import compute_dtype
from linearcore.tagging._heads import ChainSettings
from linearcore.tagging._model import IGNORED
from linearcore.tagging._pretrained import empty_encoder, in_one_line, pretrained_encoder, pretrained_tokenizer
from linearcore.tagging.hugging_face._config import ChainConfig
from linearcore.tagging.hugging_face._local_logits import best_labels, local_logits
from linearcore.tagging.hugging_face._word_starts import kinds_of_tokens, kinds_without_tokenizer, word_starts


class ChainForTokenClassification(PreTrainedModel):
    """Token classification whose labels know their neighbours, for Trainer, pipeline and everything that takes an argmax.

    Emissions are a projection of the encoder's last hidden states; on top is one of linearcore's chain heads. Labels sit at
    the *sites* of a text, usually the first sub-word of each word: where `labels` is not −100, where `word_mask` says so,
    or else where a word begins according to the vocabulary.

    In eval mode the logits are the scores of changing one label of the decoded sequence (`local_logits`), and their argmax
    *is* that sequence. In training mode nothing is decoded, which would be slow, and the logits are the emissions. Prefer
    `loss="ce"`, or transformers' own classes, where labels do not depend on their neighbours: there is nothing to decode.

    Args:
        config: what it is made of.
        encoder: with weights already in it; None makes one whose weights are yet to be read or trained.

    Attributes:
        token_kinds: (vocabulary,) int8, which tokens begin words; saved with the weights.
    """

    config_class = ChainConfig
    config: ChainConfig
    base_model_prefix = "encoder"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    # Attention is the encoder's: it refuses what it cannot do.
    _supports_sdpa = _supports_flash_attn = _supports_flash_attn_2 = _supports_flex_attn = True
    _supports_attention_backend = True
    # For Trainer: `forward` takes the number of labels of all batches that make one step, and divides by it.
    accepts_loss_kwargs = True
    token_kinds: Tensor

    def __init__(self, config: ChainConfig, encoder: PreTrainedModel | None = None) -> None:
        super().__init__(config)
        if config.encoder is None:
            advice = "begin with ChainForTokenClassification.from_encoder"
            raise ValueError(complaint("config", "hold the configuration of an encoder", "none", advice))
        self.encoder = empty_encoder(config.encoder) if encoder is None else encoder
        self.dropout = nn.Dropout(config.dropout)
        self.projection = nn.Linear(config.encoder.hidden_size, config.num_labels)
        self.head = config.head()
        self.register_buffer("token_kinds", kinds_without_tokenizer(config.encoder, self._vocabulary))
        self.post_init()  # Draws the weights of all parts that were not made by transformers, which marks its own.

    @classmethod
    def from_encoder(
        cls,
        path: str | Path,
        tokenizer: PreTrainedTokenizerBase | None = None,
        *,
        labels: Sequence[str],
        dropout: float = 0.1,
        **options: Any,
    ) -> Self:
        """A pre-trained encoder with a fresh projection and head, to be trained.

        Args:
            path: a local folder, or a name on the hub; weights are read from safetensors only.
            tokenizer: says which tokens begin a word; None is that of `path`, and without one there every token is a word.
            labels: their names, in the order of their indices.
            dropout: of the hidden states.
            options: the loss and those of its head, as in `linearcore.tagging.ChainSettings`.

        Raises:
            TypeError: if there is no such option.
            ValueError: in one line, if there is no such encoder, or if an option or a label is wrong.
        """
        names = list(labels)
        if not names or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
            must, advice = "be different names, at least one", "list them in the order of their indices"
            raise ValueError(complaint("labels", must, repr(names[:10]), advice))
        numbers = {name: index for index, name in enumerate(names)}
        chosen = asdict(ChainSettings(**options))
        config = ChainConfig(None, dropout, id2label=dict(enumerate(names)), label2id=numbers, **chosen)
        encoder = pretrained_encoder(path)
        config.encoder = encoder.config
        model = cls(config, encoder)
        if tokenizer is None:
            try:
                tokenizer = pretrained_tokenizer(path)
            except ValueError as error:
                warnings.warn(f"every token is taken for a word, for there is no tokenizer: {error}", stacklevel=2)
        if tokenizer is not None:
            model.use_tokenizer(tokenizer)
        return model

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | PathLike[str] | None, *args: Any, **options: Any) -> Self:
        """What `save_pretrained` wrote; options as for every PreTrainedModel.

        Raises:
            ValueError: in one line, if it is something else.
        """
        options.setdefault("use_safetensors", True)
        path, must = pretrained_model_name_or_path, "be a folder or name of a saved chain"
        with in_one_line(path, must, "other encoders go into `from_encoder`"):
            found: Any = super().from_pretrained(path, *args, **options)
        (found[0] if isinstance(found, tuple) else found)._restore_rules()
        loaded: Self = found
        return loaded

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        word_mask: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        decode_logits: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> TokenClassifierOutput | tuple[Tensor, ...]:
        """Loss and logits.

        Args:
            input_ids, attention_mask, token_type_ids, position_ids: (B, T), as the encoder takes them.
            labels: (B, T), −100 where there is none.
            word_mask: (B, T), on at the first token of each word; None is where `labels` are, or else what the vocabulary
                says. It says where to decode; the loss is over all labels.
            num_items_in_batch: the loss is a sum divided by this; None is the number of labels here.
            decode_logits: logits whose argmax is the decoded sequence; None in eval mode, not in training.
            output_attentions, output_hidden_states, return_dict: as for every model.

        Returns:
            `loss`, None without labels: a mean over labels; `logits` (B, T, |Y|), in float32 at least.
        """
        asked = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
        emissions, states = self._emissions(input_ids, attention_mask, token_type_ids, position_ids, **asked)
        loss = None if labels is None else self._loss(emissions, labels, num_items_in_batch)
        logits = emissions
        if self.head is not None and (not self.training if decode_logits is None else decode_logits):
            sites = labels != IGNORED if word_mask is None and labels is not None else None
            sites = self.sites(input_ids, attention_mask, word_mask) if sites is None else sites
            with torch.autocast(emissions.device.type, enabled=False):
                found = best_labels(self.head, emissions, sites, self.config.width)
                logits = local_logits(self.head, emissions, sites, found)
        output = TokenClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=getattr(states, "hidden_states", None),
            attentions=getattr(states, "attentions", None),
        )
        return output if return_dict is None or return_dict else output.to_tuple()

    @torch.no_grad()
    def decode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        word_mask: Tensor | None = None,
    ) -> list[list[str]]:
        """The names of the best labels, one for each site of each text; arguments as in `forward`."""
        emissions, _ = self._emissions(input_ids, attention_mask, token_type_ids, position_ids)
        sites, names = self.sites(input_ids, attention_mask, word_mask), self.config.labels
        found = emissions.argmax(-1) if self.head is None else best_labels(self.head, emissions, sites, self.config.width)
        return [[names[label] for label in row[on].tolist()] for row, on in zip(found, sites, strict=True)]

    def sites(self, input_ids: Tensor, attention_mask: Tensor | None = None, word_mask: Tensor | None = None) -> Tensor:
        """(B, T) booleans: where labels sit in a text that has none yet."""
        return word_starts(self.token_kinds, input_ids, attention_mask) if word_mask is None else word_mask.bool()

    def use_tokenizer(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Learns from a vocabulary which tokens begin a word; saved with the model.

        Raises:
            ValueError: if it marks the ends of words, or is not the encoder's.
        """
        self.token_kinds.copy_(kinds_of_tokens(tokenizer, self._vocabulary))

    @property
    def _vocabulary(self) -> int:
        size: int = self.encoder.get_input_embeddings().weight.shape[0]
        return size

    def _emissions(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        token_type_ids: Tensor | None,
        position_ids: Tensor | None,
        **asked: bool | None,
    ) -> tuple[Tensor, Any]:
        """(B, T, |Y|), and all that the encoder gives. What is None is not passed on: not every encoder knows all."""
        given = {"attention_mask": attention_mask, "token_type_ids": token_type_ids, "position_ids": position_ids} | asked
        states = self.encoder(input_ids=input_ids, **{name: value for name, value in given.items() if value is not None})
        emissions: Tensor = self.projection(self.dropout(states.last_hidden_state))
        return emissions.to(compute_dtype(emissions)), states

    def _loss(self, emissions: Tensor, labels: Tensor, num_items: Tensor | int | None) -> Tensor:
        # A matrix product in half precision would undo what float32 is for.
        with torch.autocast(emissions.device.type, enabled=False):
            if self.head is None:
                flat = emissions.flatten(0, 1), labels.flatten().long()
                total = F.cross_entropy(*flat, ignore_index=IGNORED, reduction="sum")
            else:
                total = self.head.loss(emissions, labels, reduction="sum")
        count = (labels != IGNORED).sum() if num_items is None else torch.as_tensor(num_items, device=total.device)
        # Several GPUs in one process get the number as a tensor with dimensions; a batch may have no label at all.
        return total / count.reshape(-1)[0].clamp(min=1)

    def _init_weights(self, module: nn.Module) -> None:
        """Called by transformers for every part that is not the encoder's and has no weights yet."""
        if module is self.head:
            self.head.reset_parameters()
        elif module is self.projection:
            nn.init.normal_(self.projection.weight, 0.0, getattr(self.config.encoder, "initializer_range", 0.02))
            nn.init.zeros_(self.projection.bias)

    def _restore_rules(self) -> None:
        """Fills in the head's constraints: they are no part of its state, and transformers empties such buffers."""
        if self.head is not None and self.head.constraints is not None:
            for name, buffer in self.head.named_buffers(recurse=False):
                buffer.copy_(getattr(self.head.constraints, name.removeprefix("_allowed_")))


def register() -> None:
    """Lets AutoConfig and AutoModelForTokenClassification read saved chains, and pipelines call them by name.

    Importing does not do it, since it changes what transformers does in the whole process. Twice is once.

    Example:
        >>> from transformers import AutoConfig
        >>> register()
        >>> type(AutoConfig.for_model("linearcore-chain", num_labels=3)).__name__
        'ChainConfig'
    """
    AutoConfig.register(ChainConfig.model_type, ChainConfig, exist_ok=True)
    AutoModelForTokenClassification.register(ChainConfig, ChainForTokenClassification, exist_ok=True)
