"""Spelling features of a word: hashed prefixes, suffixes and shape.

This file is also part of the script that `Tagger.export` writes, so it imports the standard library only.
"""

import zlib
from functools import lru_cache

#: Maximum lengths of suffixes and prefixes. Inflection is mostly in the suffix.
MAX_SUFFIX, MAX_PREFIX = 6, 3
#: Number of features of a word: the word in lower case, its suffixes and prefixes, and its shape.
FEATURES = 1 + MAX_SUFFIX + MAX_PREFIX + 1
_MAX_SHAPE = 12


@lru_cache(maxsize=2**17)
def spelling(word: str, buckets: int) -> tuple[int, ...]:
    """Returns `FEATURES` hash values from 1 to `buckets`; 0 if the word is too short for a feature.

    Unknown words share suffixes and shapes with known ones. CRC-32 is used, because Python's `hash` differs between runs.

    Example:
        >>> spelling("sings", 1000)[:3] == spelling("rings", 1000)[:3]
        False
        >>> spelling("sings", 1000)[1:5] == spelling("rings", 1000)[1:5]  # s, gs, ngs, ings
        True
    """
    lower = word.lower()
    suffixes = [lower[-size:] if len(lower) >= size else "" for size in range(1, MAX_SUFFIX + 1)]
    prefixes = [lower[:size] if len(lower) >= size else "" for size in range(1, MAX_PREFIX + 1)]
    return tuple(_bucket(kind, text, buckets) for kind, text in enumerate([lower, *suffixes, *prefixes, shape(word)]))


def shape(word: str) -> str:
    """Replaces capital letters by X, other letters by x and digits by 0, and shortens runs of one character to two.

    Example:
        >>> shape("McDonald's"), shape("1984"), shape("U.S.")
        ("XxXxx'x", '00', 'X.X.')
    """
    kinds: list[str] = []
    for character in word:
        kind = "X" if character.isupper() else "x" if character.isalpha() else "0" if character.isdigit() else character
        if kinds[-2:] != [kind, kind]:
            kinds.append(kind)
    return "".join(kinds[:_MAX_SHAPE])


def _bucket(kind: int, text: str, buckets: int) -> int:
    return 1 + zlib.crc32(f"{kind} {text}".encode("utf-8", "surrogatepass")) % buckets if text else 0
