"""Reads files of pre-trained word vectors with gensim."""

import gzip
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._extras import require

if TYPE_CHECKING:
    from gensim.models import KeyedVectors

_GZIP = b"\x1f\x8b"
#: First four bytes of fastText's binary files.
_FASTTEXT = struct.pack("<i", 793712314)
#: Number of bytes from which the format is recognised; longer than the header and the first vector.
_START = 2**16
_FORMATS = "be word vectors: word2vec (text or binary), fastText (.vec or .bin), or GloVe text; plain or .gz"


def read_vectors(path: str | Path, limit: int) -> tuple[list[str], Tensor]:
    """Reads the first `limit` vectors of a file, which are usually those of the most frequent words.

    The format is recognised by the content: word2vec text and binary, fastText text (.vec) and binary (.bin), and GloVe text
    without a header; plain or gzip (.gz). Of a fastText .bin file the vectors of words are read, and n-grams are ignored.

    Returns:
        The words and their vectors (words, size).

    Raises:
        MissingExtraError: if gensim is not installed.
        ValueError: if the file cannot be read, has an unknown format or is damaged.
    """
    require("gensim", extra="vectors")
    path = Path(path)
    with _one_line_errors(path):
        vectors = _load(path, limit)
    words: list[str] = list(vectors.index_to_key[:limit])
    rows = np.asarray(vectors.vectors[:limit], dtype=np.float32)
    is_finite = np.isfinite(rows).all(1)
    if not is_finite.all():
        raise _complaint(path, f"a number that is not finite for the word {words[int(is_finite.argmin())]!r}")
    if not words or not rows.any():
        raise _complaint(path, "no vectors")
    return words, torch.from_numpy(rows.copy())


def _load(path: Path, limit: int) -> "KeyedVectors":
    from gensim.models import KeyedVectors
    from gensim.models.fasttext import load_facebook_vectors

    with path.open("rb") as stream:
        start = stream.read(_START)
    if start.startswith(_GZIP) != (path.suffix == ".gz"):
        raise ValueError("a gzip file must have the ending .gz, and no other file may have it")
    if start.startswith(_GZIP):
        with gzip.open(path) as archive:
            start = archive.read(_START)
    if start.startswith(_FASTTEXT):
        return load_facebook_vectors(str(path))

    class CheckedVectors(KeyedVectors):  # type: ignore[misc]
        """Refuses rows with one number instead of `vector_size`, which gensim would repeat."""

        def add_vector(self, key: str, vector: Any) -> Any:
            if len(vector) != self.vector_size:
                raise ValueError(f"{len(vector)} instead of {self.vector_size} numbers for the word {key!r}")
            return super().add_vector(key, vector)

    return CheckedVectors.load_word2vec_format(str(path), limit=limit, **_word2vec_options(start))


def _word2vec_options(start: bytes) -> dict[str, bool]:
    """Returns gensim's options for the format that begins with these bytes."""
    lines = start.split(b"\n", 2)
    header = lines[0].split()
    if len(header) == 2 and all(number.isdigit() for number in header):
        return {"binary": not (len(lines) > 1 and _is_vector(lines[1], int(header[1])))}
    if len(header) > 2 and _is_vector(lines[0], len(header) - 1):
        return {"no_header": True}
    raise ValueError("the first line is neither a header nor a vector")


def _is_vector(line: bytes, size: int) -> bool:
    """Whether a line is a word and `size` numbers."""
    numbers = line.split()[1:]
    try:
        return len(numbers) == size and all(np.isfinite(float(number)) for number in numbers)
    except ValueError:
        return False


@contextmanager
def _one_line_errors(path: Path) -> Iterator[None]:
    """Turns errors of the file system and of gensim, which are of many types, into one-line ValueErrors."""
    try:
        yield
    except FileNotFoundError:
        raise _complaint(path, "no such file") from None
    except Exception as error:
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
        raise _complaint(path, f"a file that cannot be read ({' '.join(reason.split())[:100]})") from None


def _complaint(path: Path, got: str) -> ValueError:
    return ValueError(complaint("vectors", _FORMATS, f"{path.name}: {got}", "check the file, or download it again"))
