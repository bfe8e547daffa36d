"""Pre-trained Hugging Face transformer as an encoder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._extras import require
from linearcore.tagging._pretrained import (
    empty_encoder,
    file_errors,
    one_line_errors,
    pretrained_encoder,
    pretrained_tokenizer,
)
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders._cutting import cut_into_rows
from linearcore.tagging.encoders._encoder import Encoder, WordFeatures
from linearcore.tagging.encoders._rows import Rows, collate_rows, to_tensors

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


class TransformerEncoder(Encoder):
    """Hugging Face encoder; the hidden state of a word is that of its first sub-word.

    A sentence with more sub-words than the model has positions is split at word boundaries into several rows, so every word
    has a hidden state; attention does not cross rows. A word with more sub-words than a row holds is truncated.

    `TransformerEncoder.from_pretrained(path)` loads a folder or downloads from the hub. Prefer `BiLSTM` if there is no
    pre-trained model for the language, or to train on a CPU.

    Args:
        model: a model that returns `last_hidden_state`.
        tokenizer: its fast tokenizer.
        max_length: sub-words per row, including special tokens; None is the model's number of positions.

    Raises:
        ValueError: if `max_length` is too small for one word, or larger than the model's number of positions.

    Cost: that of the model, for the rows of a batch padded to the longest.
    """

    kind = "transformer"
    takes_path = True
    # Fine-tuning needs a smaller learning rate and fewer epochs than training from scratch.
    default_lr, default_batch_tokens, default_epochs = 1e-4, 1600, 4
    input_axes: ClassVar = {
        "input_ids": ("rows", "pieces"), "attention_mask": ("rows", "pieces"), "index": ("batch", "length"),
    }  # fmt: skip

    def __init__(
        self, model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerFast", *, max_length: int | None = None
    ) -> None:
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.width = int(model.config.hidden_size)
        self._before, self._after = _special_tokens(tokenizer)
        self._unknown = next(
            # Token for a word without sub-words; byte-level tokenizers may have no unknown token.
            (number for number in (tokenizer.unk_token_id, tokenizer.pad_token_id) if number is not None),
            0,
        )
        max_positions = _max_positions(model, tokenizer)
        min_length = len(self._before) + len(self._after) + 1
        if max_length is not None and not min_length <= max_length <= (max_positions or max_length):
            must = f"be between {min_length} and the model's {max_positions or 'number of'} positions"
            raise ValueError(complaint("max_length", must, max_length, "omit it to use all positions"))
        self.max_length = max_positions if max_length is None else max_length

    @classmethod
    def from_pretrained(cls, path: str | Path, *, max_length: int | None = None) -> Self:
        """Loads model and tokenizer from a local folder or the hub, without pickle and without remote code.

        Raises:
            MissingExtraError: if transformers is not installed.
            ValueError: if there is no such model, or its tokenizer is not fast.
        """
        return cls(pretrained_encoder(path), pretrained_tokenizer(path), max_length=max_length)

    @classmethod
    def from_settings(cls, vocabulary: Vocabulary, path: str = "", **settings: Any) -> Self:
        return cls.from_pretrained(path, **settings)

    def featurize(self, words: Sequence[str]) -> WordFeatures:
        """Returns the token ids of all rows, the lengths of the rows, and the position of each word's first sub-word."""
        return tuple(to_tensors(*cut_into_rows(self._pieces(words), self._before, self._after, self._max_tokens)))

    @property
    def _max_tokens(self) -> int | None:
        """Sub-words per row without special tokens."""
        return None if self.max_length is None else self.max_length - len(self._before) - len(self._after)

    def _pieces(self, words: Sequence[str]) -> list[list[int]]:
        """Returns the sub-words of each word, at least one per word."""
        # The tokenizer does not accept unpaired surrogates.
        texts = [word.encode("utf-8", "replace").decode("utf-8") for word in words]
        pieces: list[list[int]] = [[] for _ in texts]
        if not texts:
            return pieces
        # verbose=False: no warning about sentences that are too long for one row.
        encoding = self.tokenizer(texts, is_split_into_words=True, add_special_tokens=False, truncation=False, verbose=False)
        for number, word in zip(encoding["input_ids"], encoding.word_ids(), strict=True):
            pieces[word].append(number)
        return [piece or [self._unknown] for piece in pieces]

    def collate(self, sentences: Sequence[WordFeatures], length: int) -> dict[str, Tensor]:
        """Returns `input_ids` and `attention_mask` (rows, sub-words), and the `index` (B, length) of first sub-words."""
        return collate_rows([Rows(*sentence) for sentence in sentences], length, self._padding)

    @property
    def _padding(self) -> int:
        pad = self.tokenizer.pad_token_id
        return 0 if pad is None else int(pad)

    def forward(self, mask: Tensor, *, input_ids: Tensor, attention_mask: Tensor, index: Tensor) -> Tensor:
        """Returns the hidden state (B, L, width) of each word's first sub-word; arbitrary where `mask` is False."""
        states: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states.flatten(0, 1)[index]

    def save(self, folder: Path) -> dict[str, Any]:
        """Writes the model's configuration and the tokenizer as JSON into `folder`; weights are not written."""
        with file_errors(folder):
            self.model.config.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder, legacy_format=False)
        return {"max_length": self.max_length}

    def lookup(self) -> dict[str, Any]:
        """Returns the tokenizer as `tokenizers` saves it, the special tokens, and the number of sub-words per row."""
        return {
            "tokenizer": json.loads(self.tokenizer.backend_tokenizer.to_str()),
            "before": self._before,
            "after": self._after,
            "unknown": self._unknown,
            "padding": self._padding,
            "max_tokens": self._max_tokens,
        }

    @classmethod
    def load(cls, folder: Path, settings: dict[str, Any]) -> Self:
        require("transformers", extra="tagging")
        from transformers import AutoConfig

        if not (folder / "config.json").is_file():
            advice = "save the tagger again, or copy the whole folder"
            raise ValueError(complaint("folder", "contain config.json of a transformer", "none", advice))
        with one_line_errors(folder):
            config = AutoConfig.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        tokenizer = pretrained_tokenizer(folder)
        # All weights will be overwritten, so their initialisation must not change the caller's random state.
        with torch.random.fork_rng(devices=[]):
            model = empty_encoder(config)
        return cls(model, tokenizer, max_length=settings.get("max_length"))


def _special_tokens(tokenizer: "PreTrainedTokenizerFast") -> tuple[list[int], list[int]]:
    """Returns the special tokens before and after a text, such as [CLS] and [SEP]."""
    encoding = tokenizer(["a"], is_split_into_words=True)
    token_ids, words = encoding["input_ids"], encoding.word_ids()
    inside = [position for position, word in enumerate(words) if word is not None]
    first, last = (inside[0], inside[-1]) if inside else (len(words), len(words))
    return token_ids[:first], token_ids[last + 1 :]


def _max_positions(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerFast") -> int | None:
    """Returns the maximum number of sub-words of the model; None if it is unknown."""
    max_positions = getattr(model.config, "max_position_embeddings", None)
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    if max_positions is not None and padding is not None:
        max_positions -= padding + 1  # In RoBERTa and similar models positions start after the padding index.
    limits = [limit for limit in (max_positions, tokenizer.model_max_length) if limit is not None and 0 < limit < 10**9]
    return min(limits, default=None)
