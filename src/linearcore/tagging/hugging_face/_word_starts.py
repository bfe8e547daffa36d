"""Finds the tokens that start a word, from the vocabulary only."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from linearcore._checks import complaint

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

#: Kinds of tokens, saved as one int8 per entry of the vocabulary.
INSIDE, START, SPECIAL = 0, 1, 2
#: WordPiece marks tokens that continue a word; byte-level BPE and SentencePiece mark tokens after a space.
_CONTINUING, _AFTER_SPACE = "##", ("Ġ", "▁")
#: Special tokens that are not words. The unknown token is a word.
_NON_WORD_TOKENS = ("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "pad_token_id", "mask_token_id")


def kinds_of_tokens(tokenizer: "PreTrainedTokenizerBase", size: int) -> Tensor:
    """Returns the kind of each entry of the vocabulary, (size,) int8: inside a word, start of a word, or special.

    The mark that most entries have is used. If no entry has a mark, every token is a word.

    Args:
        tokenizer: the tokenizer with the vocabulary.
        size: number of rows of the encoder's embedding.

    Raises:
        ValueError: if the vocabulary marks the ends of words, which does not show where words start, or is too large.
    """
    entries = tokenizer.get_vocab()
    if max(entries.values(), default=0) >= size:
        must, got = f"have at most the encoder's {size} entries", max(entries.values()) + 1
        raise ValueError(complaint("tokenizer", must, got, "use the tokenizer of the same model"))
    marks = {mark: sum(entry.startswith(mark) for entry in entries) for mark in (_CONTINUING, *_AFTER_SPACE)}
    mark = max(marks, key=lambda mark: marks[mark])
    if sum(entry.endswith("</w>") for entry in entries) > marks[mark]:
        advice = "pass `word_mask` to the model, or use a WordPiece, byte-level BPE or SentencePiece tokenizer"
        raise ValueError(complaint("tokenizer", "mark where words start", "one that marks where they end", advice))
    kinds = torch.full((size,), START, dtype=torch.int8)
    for entry, number in entries.items():
        if marks[mark] and entry.startswith(mark) == (mark == _CONTINUING):
            kinds[number] = INSIDE
    non_words = {getattr(tokenizer, name) for name in _NON_WORD_TOKENS} | (
        set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    )
    kinds[sorted(non_words - {None})] = SPECIAL
    unknown = tokenizer.unk_token_id
    if unknown is not None and kinds[unknown] == INSIDE and mark not in entries:
        kinds[unknown] = START  # If the mark itself is an entry, it precedes unknown characters as a separate token.
    return kinds


def kinds_without_tokenizer(config: "PretrainedConfig", size: int) -> Tensor:
    """Returns kinds, (size,) int8, in which every token is a word except the special tokens in the configuration."""
    kinds = torch.full((size,), START, dtype=torch.int8)
    non_words = {getattr(config, name, None) for name in _NON_WORD_TOKENS} - {None}
    kinds[sorted(number for number in non_words if isinstance(number, int) and 0 <= number < size)] = SPECIAL
    return kinds


def word_starts(kinds: Tensor, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Returns a (B, T) mask of the tokens that start a word; the first token after a special one always does.

    Args:
        kinds: kind of each entry of the vocabulary.
        input_ids: (B, T) token ids.
        attention_mask: (B, T), 0 at padding.

    Example:
        >>> kinds = torch.tensor([SPECIAL, START, INSIDE], dtype=torch.int8)
        >>> word_starts(kinds, torch.tensor([[0, 2, 2, 1, 2, 0]]), None).long()
        tensor([[0, 1, 0, 1, 0, 0]])
    """
    kind = kinds[input_ids]
    if attention_mask is not None:
        kind = kind.masked_fill(attention_mask == 0, SPECIAL)
    previous = torch.cat([torch.full_like(kind[:, :1], SPECIAL), kind[:, :-1]], 1)
    return (kind == START) | ((kind == INSIDE) & (previous == SPECIAL))
