"""Which tokens begin a word, known from the vocabulary alone."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from linearcore._checks import complaint

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

#: What a token is. Small numbers, for there is one for each entry of the vocabulary in the saved model.
INSIDE, BEGINS, SPECIAL = 0, 1, 2
#: WordPiece marks what goes on with a word; byte-level BPE and SentencePiece mark what comes after a space.
_CONTINUING, _AFTER_SPACE = "##", ("Ġ", "▁")
#: Tokens under these names stand for no word. The unknown token is not among them: it does.
_NO_WORD = ("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "pad_token_id", "mask_token_id")


def kinds_of_tokens(tokenizer: "PreTrainedTokenizerBase", size: int) -> Tensor:
    """(size,) int8: for each entry of the vocabulary whether it is inside a word, begins one, or is special.

    Which marks a vocabulary has is read off its entries: the mark that most of them have. Without any mark every token is a
    word.

    Args:
        tokenizer: whose vocabulary it is.
        size: rows of the encoder's embedding.

    Raises:
        ValueError: if the vocabulary marks ends of words, which says nothing of a token alone, or does not fit.
    """
    entries = tokenizer.get_vocab()
    if max(entries.values(), default=0) >= size:
        must, got = f"have at most the encoder's {size} entries", max(entries.values()) + 1
        raise ValueError(complaint("tokenizer", must, got, "take the tokenizer of the same model"))
    marks = {mark: sum(entry.startswith(mark) for entry in entries) for mark in (_CONTINUING, *_AFTER_SPACE)}
    mark = max(marks, key=lambda mark: marks[mark])
    if sum(entry.endswith("</w>") for entry in entries) > marks[mark]:
        advice = "pass `word_mask` to the model, and a tokenizer of WordPiece, byte-level BPE or SentencePiece here"
        raise ValueError(complaint("tokenizer", "mark where words begin", "one that marks where they end", advice))
    kinds = torch.full((size,), BEGINS, dtype=torch.int8)
    for entry, number in entries.items():
        if marks[mark] and entry.startswith(mark) == (mark == _CONTINUING):
            kinds[number] = INSIDE
    no_word = {getattr(tokenizer, name) for name in _NO_WORD} | (set(tokenizer.all_special_ids) - {tokenizer.unk_token_id})
    kinds[sorted(no_word - {None})] = SPECIAL
    unknown = tokenizer.unk_token_id
    if unknown is not None and kinds[unknown] == INSIDE and mark not in entries:
        kinds[unknown] = BEGINS  # Where the mark is an entry, it stands in front of unknown characters on its own.
    return kinds


def kinds_without_tokenizer(config: "PretrainedConfig", size: int) -> Tensor:
    """(size,) int8: every token is a word but those that the encoder's configuration calls special."""
    kinds = torch.full((size,), BEGINS, dtype=torch.int8)
    no_word = {getattr(config, name, None) for name in _NO_WORD} - {None}
    kinds[sorted(number for number in no_word if isinstance(number, int) and 0 <= number < size)] = SPECIAL
    return kinds


def word_starts(kinds: Tensor, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """(B, T) booleans: a token that begins a word, or is the first after a special one or at all.

    Args:
        kinds: of the vocabulary's entries.
        input_ids: (B, T).
        attention_mask: (B, T), 0 where there is padding.

    Example:
        >>> kinds = torch.tensor([SPECIAL, BEGINS, INSIDE], dtype=torch.int8)
        >>> word_starts(kinds, torch.tensor([[0, 2, 2, 1, 2, 0]]), None).long()
        tensor([[0, 1, 0, 1, 0, 0]])
    """
    found = kinds[input_ids]
    if attention_mask is not None:
        found = found.masked_fill(attention_mask == 0, SPECIAL)
    before = torch.cat([torch.full_like(found[:, :1], SPECIAL), found[:, :-1]], 1)
    return (found == BEGINS) | ((found == INSIDE) & (before == SPECIAL))
