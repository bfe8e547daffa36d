"""A pre-trained transformer over sub-words."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._extras import require
from linearcore.tagging._pretrained import empty_encoder, one_line_errors, pretrained_encoder, pretrained_tokenizer
from linearcore.tagging.encoders._encoder import Encoder, WordFeatures
from linearcore.tagging.encoders._rows import Rows, collate_rows, cut_into_rows

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


class TransformerEncoder(Encoder):
    """Any encoder of Hugging Face; a word's hidden state is that of its first sub-word.

    A sentence with more sub-words than the model has positions is cut at a border of words into several rows, so that every
    word has a hidden state; a row sees nothing of the others. Sub-words of a single word that has more than a row holds are
    left out from there on.

    `TransformerEncoder.from_pretrained(path)` reads a folder or downloads from the hub. Prefer `BiLSTM` where no
    pre-trained model knows the language, or where seconds of a CPU are what there is.

    Args:
        model: gives hidden states as `last_hidden_state`.
        tokenizer: its tokenizer, a fast one.
        max_length: sub-words of a row, special ones included; None is the model's number of positions.

    Raises:
        ValueError: if `max_length` leaves no room for a word, or is more than the model has.

    Cost: that of the model, for the rows of a batch padded to the longest.
    """

    kind = "transformer"

    def __init__(
        self, model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerFast", *, max_length: int | None = None
    ) -> None:
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.width = int(model.config.hidden_size)
        self._before, self._after = _special(tokenizer)
        self._unknown = next(
            # Byte-level tokenizers may have no unknown token; what stands for a word of nothing hardly matters then.
            (number for number in (tokenizer.unk_token_id, tokenizer.pad_token_id) if number is not None),
            0,
        )
        most = _positions(model, tokenizer)
        least = len(self._before) + len(self._after) + 1
        if max_length is not None and not least <= max_length <= (most or max_length):
            must = f"be between {least} and the model's {most or 'positions'}"
            raise ValueError(complaint("max_length", must, max_length, "leave it out to use all positions"))
        self.max_length = most if max_length is None else max_length

    @classmethod
    def from_pretrained(cls, path: str | Path, *, max_length: int | None = None) -> Self:
        """The model and the tokenizer of a local folder, or of a name on the hub. No pickle, no foreign code.

        Raises:
            MissingExtraError: if transformers is not installed.
            ValueError: in one line, if there is no such model, or its tokenizer is not fast.
        """
        return cls(pretrained_encoder(path), pretrained_tokenizer(path), max_length=max_length)

    def featurize(self, words: Sequence[str]) -> WordFeatures:
        """The sub-words of all rows one after the other, the rows' lengths, and the place of each word's first sub-word."""
        pieces = self._pieces(words)
        room = None if self.max_length is None else self.max_length - len(self._before) - len(self._after)
        return tuple(cut_into_rows(pieces, self._before, self._after, room))

    def _pieces(self, words: Sequence[str]) -> list[list[int]]:
        """The sub-words of each word, at least one."""
        # Half a surrogate pair is no character, and the tokenizer would not take it.
        given = [word.encode("utf-8", "replace").decode("utf-8") for word in words]
        pieces: list[list[int]] = [[] for _ in given]
        if not given:
            return pieces
        # Not verbose: that a sentence is too long for one row is no news here.
        found = self.tokenizer(given, is_split_into_words=True, add_special_tokens=False, truncation=False, verbose=False)
        for number, word in zip(found["input_ids"], found.word_ids(), strict=True):
            pieces[word].append(number)
        return [piece or [self._unknown] for piece in pieces]

    def collate(self, sentences: Sequence[WordFeatures], length: int) -> dict[str, Tensor]:
        """`input_ids` and `attention_mask` (rows, sub-words), and `index` (B, length), from a word into the two."""
        pad = self.tokenizer.pad_token_id
        return collate_rows([Rows(*sentence) for sentence in sentences], length, 0 if pad is None else pad)

    def forward(self, mask: Tensor, *, input_ids: Tensor, attention_mask: Tensor, index: Tensor) -> Tensor:
        """(B, L, width): the hidden state of each word's first sub-word; that of some sub-word where `mask` is off."""
        states: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states.flatten(0, 1)[index]

    def save(self, folder: Path) -> dict[str, Any]:
        """Writes the model's configuration and the tokenizer as JSON into `folder`, which nobody else uses; no weights."""
        self.model.config.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder, legacy_format=False)
        return {"max_length": self.max_length}

    @classmethod
    def load(cls, folder: Path, settings: dict[str, Any]) -> Self:
        require("transformers", extra="tagging")
        from transformers import AutoConfig

        if not (folder / "config.json").is_file():
            advice = "save the tagger again, or copy all of its folder"
            raise ValueError(complaint("folder", "hold config.json of a transformer", "none", advice))
        with one_line_errors(folder):
            config = AutoConfig.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
        tokenizer = pretrained_tokenizer(folder)
        # Every weight will be overwritten: drawing them is no reason to move the caller's random numbers.
        with torch.random.fork_rng(devices=[]):
            model = empty_encoder(config)
        return cls(model, tokenizer, max_length=settings.get("max_length"))


def _special(tokenizer: "PreTrainedTokenizerFast") -> tuple[list[int], list[int]]:
    """The special tokens before and after a text, such as [CLS] and [SEP]."""
    found = tokenizer(["a"], is_split_into_words=True)
    numbers, words = found["input_ids"], found.word_ids()
    inside = [place for place, word in enumerate(words) if word is not None]
    first, last = (inside[0], inside[-1]) if inside else (len(words), len(words))
    return numbers[:first], numbers[last + 1 :]


def _positions(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerFast") -> int | None:
    """How many sub-words the model takes; None if nothing says so."""
    most = getattr(model.config, "max_position_embeddings", None)
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    if most is not None and padding is not None:
        most -= padding + 1  # RoBERTa and its kin count positions from behind that of padding.
    known = [limit for limit in (most, tokenizer.model_max_length) if limit is not None and 0 < limit < 10**9]
    return min(known, default=None)
