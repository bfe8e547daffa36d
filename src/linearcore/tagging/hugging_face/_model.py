"""Hugging Face model for token classification with a chain head."""

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
from linearcore.tagging._decoding import best_tags
from linearcore.tagging._heads import ChainSettings
from linearcore.tagging._model import IGNORED
from linearcore.tagging._pretrained import empty_encoder, one_line_errors, pretrained_encoder, pretrained_tokenizer
from linearcore.tagging.hugging_face._config import ChainConfig
from linearcore.tagging.hugging_face._local_logits import local_logits
from linearcore.tagging.hugging_face._word_starts import kinds_of_tokens, kinds_without_tokenizer, word_starts


class ChainForTokenClassification(PreTrainedModel):
    """Token classification with a chain head, for Trainer, pipeline and other code that uses the argmax of logits.

    Emissions are a linear projection of the encoder's last hidden states. Labels are at the *sites* of a text, usually the
    first sub-word of each word: the positions where `labels` is not −100, else those in `word_mask`, else the positions
    where a word starts according to the vocabulary.

    In eval mode the logits are the scores of changing one label of the decoded sequence (`local_logits`), and their argmax
    is this sequence. In training mode nothing is decoded, because it is slow, and the logits are the emissions. Prefer
    `loss="ce"` or transformers' own classes if labels do not depend on their neighbours.

    Args:
        config: the configuration.
        encoder: an encoder with weights; None creates one with random weights.

    Attributes:
        token_kinds: (vocabulary,) int8, which tokens start a word; saved with the weights.
    """

    config_class = ChainConfig
    config: ChainConfig
    base_model_prefix = "encoder"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    # The encoder raises an error for an attention implementation that it does not support.
    _supports_sdpa = _supports_flash_attn = _supports_flash_attn_2 = _supports_flex_attn = True
    _supports_attention_backend = True
    # For Trainer: `forward` divides by the number of labels of all batches of a step (gradient accumulation).
    accepts_loss_kwargs = True
    token_kinds: Tensor

    def __init__(self, config: ChainConfig, encoder: PreTrainedModel | None = None) -> None:
        super().__init__(config)
        if config.encoder is None:
            advice = "use ChainForTokenClassification.from_encoder"
            raise ValueError(complaint("config", "contain the configuration of an encoder", "none", advice))
        self.encoder = empty_encoder(config.encoder) if encoder is None else encoder
        self.dropout = nn.Dropout(config.dropout)
        self.projection = nn.Linear(config.encoder.hidden_size, config.num_labels)
        self.head, self._cost = config.head(), config.cost_of_labels()
        self.register_buffer("token_kinds", kinds_without_tokenizer(config.encoder, self._vocabulary))
        self.post_init()  # Initialises the modules that transformers has not initialised already.

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
        """Returns a pre-trained encoder with a new projection and head, to be fine-tuned.

        Args:
            path: a local folder, or a name on the hub; weights are read from safetensors only.
            tokenizer: determines which tokens start a word; None uses that of `path`. Without one, every token is a word.
            labels: names of the labels, in the order of their indices.
            dropout: dropout of the hidden states.
            options: the loss and the options of its head, as in `linearcore.tagging.ChainSettings`.

        Raises:
            TypeError: if an option is unknown.
            ValueError: if there is no such encoder, or an option or a label is not valid.
        """
        names = list(labels)
        if not names or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
            must, advice = "be at least one name, all different", "list them in the order of their indices"
            raise ValueError(complaint("labels", must, repr(names[:10]), advice))
        label2id = {name: index for index, name in enumerate(names)}
        settings = asdict(ChainSettings(**options))
        config = ChainConfig(None, dropout, id2label=dict(enumerate(names)), label2id=label2id, **settings)
        encoder = pretrained_encoder(path)
        config.encoder = encoder.config
        model = cls(config, encoder)
        if tokenizer is None:
            try:
                tokenizer = pretrained_tokenizer(path)
            except ValueError as error:
                warnings.warn(f"every token is treated as a word, because there is no tokenizer: {error}", stacklevel=2)
        if tokenizer is not None:
            model.use_tokenizer(tokenizer)
        return model

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | PathLike[str] | None, *args: Any, **options: Any) -> Self:
        """Loads a model that `save_pretrained` wrote; options as in every PreTrainedModel.

        Raises:
            ValueError: if the folder or name is not such a model.
        """
        options.setdefault("use_safetensors", True)
        path, must = pretrained_model_name_or_path, "be a folder or name of a saved ChainForTokenClassification"
        with one_line_errors(path, must, "use `from_encoder` for other encoders"):
            loaded: Any = super().from_pretrained(path, *args, **options)
        (loaded[0] if isinstance(loaded, tuple) else loaded)._restore_constraints()
        model: Self = loaded
        return model

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
        """Returns loss and logits.

        Args:
            input_ids, attention_mask, token_type_ids, position_ids: (B, T), inputs of the encoder.
            labels: (B, T), −100 at positions without a label.
            word_mask: (B, T), True at the first token of each word, where labels are decoded; None uses the positions of
                `labels`, or else the vocabulary. The loss always includes all labels.
            num_items_in_batch: divisor of the summed loss; None is the number of labels in this batch.
            decode_logits: return logits whose argmax is the decoded sequence; None is True in eval mode only.
            output_attentions, output_hidden_states, return_dict: as in every transformers model.

        Returns:
            `loss`, the mean over labels, or None without labels; `logits` (B, T, |Y|) in float32 or float64.
        """
        outputs = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
        emissions, states = self._emissions(input_ids, attention_mask, token_type_ids, position_ids, **outputs)
        loss = None if labels is None else self._loss(emissions, labels, num_items_in_batch)
        logits = emissions
        if self.head is not None and (not self.training if decode_logits is None else decode_logits):
            sites = labels != IGNORED if word_mask is None and labels is not None else None
            sites = self.sites(input_ids, attention_mask, word_mask) if sites is None else sites
            with torch.autocast(emissions.device.type, enabled=False):
                best = best_tags(self.head, emissions, sites, self.config.beam_width)
                logits = local_logits(self.head, emissions, sites, best)
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
        """Returns the names of the best labels, one per site of each text; arguments as in `forward`."""
        emissions, _ = self._emissions(input_ids, attention_mask, token_type_ids, position_ids)
        sites, names = self.sites(input_ids, attention_mask, word_mask), self.config.labels
        best = best_tags(self.head, emissions, sites, self.config.beam_width)
        return [[names[label] for label in row[on].tolist()] for row, on in zip(best, sites, strict=True)]

    def sites(self, input_ids: Tensor, attention_mask: Tensor | None = None, word_mask: Tensor | None = None) -> Tensor:
        """Returns a (B, T) mask of the positions of labels, for texts without labels."""
        return word_starts(self.token_kinds, input_ids, attention_mask) if word_mask is None else word_mask.bool()

    def use_tokenizer(self, tokenizer: PreTrainedTokenizerBase) -> None:
        """Sets which tokens start a word from the vocabulary of a tokenizer; saved with the model.

        Raises:
            ValueError: if the tokenizer marks the ends of words, or does not belong to the encoder.
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
        **outputs: bool | None,
    ) -> tuple[Tensor, Any]:
        """Returns emissions (B, T, |Y|) and the encoder's output. Inputs that are None are not passed to the encoder."""
        inputs = {"attention_mask": attention_mask, "token_type_ids": token_type_ids, "position_ids": position_ids} | outputs
        states = self.encoder(input_ids=input_ids, **{name: value for name, value in inputs.items() if value is not None})
        emissions: Tensor = self.projection(self.dropout(states.last_hidden_state))
        return emissions.to(compute_dtype(emissions)), states

    def _loss(self, emissions: Tensor, labels: Tensor, num_items: Tensor | int | None) -> Tensor:
        # Autocast would compute matrix products in half precision.
        with torch.autocast(emissions.device.type, enabled=False):
            if self.head is None:
                flat = emissions.flatten(0, 1), labels.flatten().long()
                total = F.cross_entropy(*flat, ignore_index=IGNORED, reduction="sum")
            else:
                total = self._head_loss(self.head, emissions, labels)
        count = (labels != IGNORED).sum() if num_items is None else torch.as_tensor(num_items, device=total.device)
        # With several GPUs in one process the number is a tensor with dimensions; a batch may have no labels.
        return total / count.reshape(-1)[0].clamp(min=1)

    def _head_loss(self, head: Any, emissions: Tensor, labels: Tensor) -> Tensor:
        loss: Tensor
        if self._cost is None:
            loss = head.loss(emissions, labels, reduction="sum")
        else:  # `HEADS` says which heads take a cost; those have a `candidate_loss`.
            loss = head.candidate_loss(emissions, labels, cost=self._cost, reduction="sum")
        return loss

    def _init_weights(self, module: nn.Module) -> None:
        """Initialises a module outside the encoder; called by transformers for modules without weights."""
        if module is self.head:
            self.head.reset_parameters()
        elif module is self.projection:
            nn.init.normal_(self.projection.weight, 0.0, getattr(self.config.encoder, "initializer_range", 0.02))
            nn.init.zeros_(self.projection.bias)

    def _restore_constraints(self) -> None:
        """Restores the constraint buffers of the head, which are not saved and which transformers clears."""
        if self.head is not None and self.head.constraints is not None:
            for name, buffer in self.head.named_buffers(recurse=False):
                buffer.copy_(getattr(self.head.constraints, name.removeprefix("_allowed_")))


def register() -> None:
    """Registers saved chains with AutoConfig and AutoModelForTokenClassification, so pipelines can load them by name.

    The import does not register them, because this changes transformers for the whole process. Repeated calls are allowed.

    Example:
        >>> from transformers import AutoConfig
        >>> register()
        >>> type(AutoConfig.for_model("linearcore-chain", num_labels=3)).__name__
        'ChainConfig'
    """
    AutoConfig.register(ChainConfig.model_type, ChainConfig, exist_ok=True)
    AutoModelForTokenClassification.register(ChainConfig, ChainForTokenClassification, exist_ok=True)
