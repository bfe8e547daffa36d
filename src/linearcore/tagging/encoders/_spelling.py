"""What a word looks like, as a few numbers: its ends and beginnings, and its shape, hashed."""

import zlib
from functools import lru_cache

#: Endings and beginnings of up to so many characters. Inflection is mostly at the end.
ENDINGS, BEGINNINGS = 6, 3
#: How many numbers a word has: itself in lower case, its endings, beginnings, and its shape.
FEATURES = 1 + ENDINGS + BEGINNINGS + 1
_SHAPE = 6


@lru_cache(maxsize=2**17)
def spelling(word: str, buckets: int) -> tuple[int, ...]:
    """`FEATURES` numbers from 1 to `buckets`; 0 where the word is too short for a feature.

    Words that training has never seen share endings and shapes with those that it has. Python's own hash differs from run to
    run, so CRC-32 it is.

    Example:
        >>> spelling("sings", 1000)[:3] == spelling("rings", 1000)[:3]
        False
        >>> spelling("sings", 1000)[1:5] == spelling("rings", 1000)[1:5]  # s, gs, ngs, ings
        True
    """
    low = word.lower()
    ends = [low[-size:] if len(low) >= size else "" for size in range(1, ENDINGS + 1)]
    starts = [low[:size] if len(low) >= size else "" for size in range(1, BEGINNINGS + 1)]
    return tuple(_bucket(kind, text, buckets) for kind, text in enumerate([low, *ends, *starts, shape(word)]))


def shape(word: str) -> str:
    """Capital letters as X, small ones as x, digits as 0, runs of the same cut to two; the rest as it is.

    Example:
        >>> shape("McDonald's"), shape("1984"), shape("U.S.")
        ("XxXxx'x", '00', 'X.X.')
    """
    found: list[str] = []
    for sign in word:
        kind = "X" if sign.isupper() else "x" if sign.isalpha() else "0" if sign.isdigit() else sign
        if found[-2:] != [kind, kind]:
            found.append(kind)
    return "".join(found[: 2 * _SHAPE])


def _bucket(kind: int, text: str, buckets: int) -> int:
    return 1 + zlib.crc32(f"{kind} {text}".encode("utf-8", "surrogatepass")) % buckets if text else 0
