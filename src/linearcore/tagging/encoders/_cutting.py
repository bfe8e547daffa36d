"""Splits sentences of sub-words into rows of at most the maximum length of a transformer.

This file is also part of the script that `Tagger.export` writes, so it imports the standard library only.
"""

from collections.abc import Sequence


def cut_into_rows(
    pieces: Sequence[Sequence[int]], before: Sequence[int], after: Sequence[int], max_tokens: int | None
) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Splits a sentence at word boundaries into rows and adds special tokens to each row.

    Args:
        pieces: the sub-words of each word, at least one per word.
        before, after: special tokens around each row.
        max_tokens: maximum number of sub-words of a row without special tokens; None is no limit. A word with more
            sub-words is truncated.

    Returns:
        The rows, at least one, and the row and position of each word's first sub-word.

    Example:
        >>> cut_into_rows([[5], [6, 7], [8]], before=[1], after=[2], max_tokens=3)
        ([[1, 5, 6, 7, 2], [1, 8, 2]], [(0, 1), (0, 2), (1, 1)])
    """
    rows: list[list[int]] = [list(before)]
    places = []
    for piece in pieces:
        piece = piece[:max_tokens]
        if max_tokens is not None and len(rows[-1]) - len(before) + len(piece) > max_tokens:
            rows[-1] += after
            rows.append(list(before))
        places.append((len(rows) - 1, len(rows[-1])))
        rows[-1] += piece
    rows[-1] += after
    return rows, places
