"""Sentences of sub-words, cut into rows that a transformer can take."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


class Rows(NamedTuple):
    """A sentence as one or more rows of sub-words.

    Attributes:
        numbers: (T,) all rows one after the other, special tokens included.
        lengths: (R,) of the rows.
        places: (L, 2) of each word's first sub-word: its row and its position there.
    """

    numbers: Tensor
    lengths: Tensor
    places: Tensor


def cut_into_rows(pieces: Sequence[Sequence[int]], before: Sequence[int], after: Sequence[int], room: int | None) -> Rows:
    """Rows of whole words, each as full as it gets, between special tokens.

    Args:
        pieces: the sub-words of each word, at least one.
        before, after: special tokens around each row.
        room: sub-words of a row, special ones not counted; None is any number. A word with more is cut off there.

    Example:
        >>> rows = cut_into_rows([[5], [6, 7], [8]], before=[1], after=[2], room=3)
        >>> rows.numbers.tolist(), rows.lengths.tolist(), rows.places.tolist()
        ([1, 5, 6, 7, 2, 1, 8, 2], [5, 3], [[0, 1], [0, 2], [1, 1]])
    """
    rows: list[list[int]] = [list(before)]
    places = []
    for piece in pieces:
        piece = piece[:room]
        if room is not None and len(rows[-1]) - len(before) + len(piece) > room:
            rows[-1] += after
            rows.append(list(before))
        places.append((len(rows) - 1, len(rows[-1])))
        rows[-1] += piece
    rows[-1] += after
    return Rows(
        torch.tensor([number for row in rows for number in row], dtype=torch.int32),
        torch.tensor([len(row) for row in rows], dtype=torch.int32),
        torch.tensor(places, dtype=torch.int32).view(-1, 2),
    )


def collate_rows(sentences: Sequence[Rows], length: int, padding: int) -> dict[str, Tensor]:
    """All rows of a batch, padded, and where among them each word is.

    Args:
        sentences: as `cut_into_rows` gives them.
        length: L, to which words are padded.
        padding: the number of the padding token.

    Returns:
        `input_ids` and `attention_mask` (rows, T), and `index` (B, L): row · T + position of each word's first sub-word, 0
        where there is no word.

    Example:
        >>> rows = cut_into_rows([[5], [6, 7], [8]], before=[1], after=[2], room=3)
        >>> collate_rows([rows, rows], length=3, padding=0)["index"]
        tensor([[ 1,  2,  6],
                [11, 12, 16]])
    """
    parts = [part for sentence in sentences for part in sentence.numbers.split(sentence.lengths.tolist())]
    # A model without special tokens has a row of nothing for a sentence of nothing; one column must be there.
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
