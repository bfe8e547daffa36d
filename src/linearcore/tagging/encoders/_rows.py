"""Rows of sub-words as tensors, and batches of them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


class Rows(NamedTuple):
    """A sentence as one or more rows of sub-words.

    Attributes:
        numbers: (T,) token ids of all rows, concatenated, with special tokens.
        lengths: (R,) lengths of the rows.
        places: (L, 2) row and position of each word's first sub-word.
    """

    numbers: Tensor
    lengths: Tensor
    places: Tensor


def to_tensors(rows: Sequence[Sequence[int]], places: Sequence[tuple[int, int]]) -> Rows:
    """Returns the result of `cut_into_rows` as tensors.

    Example:
        >>> to_tensors([[1, 5, 2], [1, 8, 2]], [(0, 1), (1, 1)]).lengths
        tensor([3, 3], dtype=torch.int32)
    """
    return Rows(
        torch.tensor([number for row in rows for number in row], dtype=torch.int32),
        torch.tensor([len(row) for row in rows], dtype=torch.int32),
        torch.tensor(places, dtype=torch.int32).view(-1, 2),
    )


def collate_rows(sentences: Sequence[Rows], length: int, padding: int) -> dict[str, Tensor]:
    """Pads the rows of a batch and computes the index of each word's first sub-word.

    Args:
        sentences: results of `to_tensors`.
        length: number of words L to which sentences are padded.
        padding: id of the padding token.

    Returns:
        `input_ids` and `attention_mask` (rows, T), and `index` (B, L): row · T + position of each word's first sub-word, 0
        at padding.

    Example:
        >>> rows = to_tensors([[1, 5, 6, 7, 2], [1, 8, 2]], [(0, 1), (0, 2), (1, 1)])
        >>> collate_rows([rows, rows], length=3, padding=0)["index"]
        tensor([[ 1,  2,  6],
                [11, 12, 16]])
    """
    parts = [part for sentence in sentences for part in sentence.numbers.split(sentence.lengths.tolist())]
    # Without special tokens an empty sentence is an empty row; the extra row ensures at least one column.
    numbers = pad_sequence([*parts, torch.zeros(1, dtype=torch.int32)], batch_first=True, padding_value=padding)[:-1]
    lengths = torch.cat([sentence.lengths for sentence in sentences])
    width = numbers.shape[1]
    index = torch.zeros(len(sentences), length, dtype=torch.long)
    first = 0
    for row, sentence in zip(index, sentences, strict=True):
        places = sentence.places.long()
        row[: len(places)] = (first + places[:, 0]) * width + places[:, 1]
        first += len(sentence.lengths)
    return {
        "input_ids": numbers.long(),
        "attention_mask": (torch.arange(width) < lengths.unsqueeze(1)).long(),
        "index": index,
    }
