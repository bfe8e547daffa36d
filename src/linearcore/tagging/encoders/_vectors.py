"""Pre-trained word vectors that are not trained further."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linearcore._extras import require
from linearcore.tagging.encoders._vector_files import read_vectors

_WORDS, _ROWS = "vectors.json", "vectors.safetensors"


class WordVectors(nn.Module):
    """Table of pre-trained word vectors. It is constant, so words that do not occur in the training data can use it, too.

    A word that is not in the table has the vector of its lower-case form, or zeros. The table is no part of the state dict,
    so checkpoints stay small; `save` writes it to a file of its own.

    Args:
        words: distinct words.
        rows: (words, size), their vectors.

    Example:
        >>> vectors = WordVectors(["the", "cat"], torch.tensor([[1.0, -1.0], [0.5, 2.0]]))
        >>> ids = vectors.ids(["The", "cat", "sat"])
        >>> ids, vectors(torch.tensor(ids)).shape
        ([1, 2, 0], torch.Size([3, 2]))
    """

    rows: Tensor

    def __init__(self, words: Sequence[str], rows: Tensor) -> None:
        super().__init__()
        self.words = list(words)
        self.size = rows.shape[1]
        self._ids = {word: number for number, word in enumerate(self.words, 1)}
        self.register_buffer("rows", torch.cat([rows.new_zeros(1, self.size), rows]), persistent=False)

    @classmethod
    def read(cls, path: str | Path, limit: int) -> "WordVectors":
        """Reads the first `limit` vectors of a file, and scales them to the root mean square of trained embeddings, 1.

        Raises:
            MissingExtraError: if gensim is not installed.
            ValueError: if the file cannot be read, has an unknown format or is damaged.
        """
        words, rows = read_vectors(path, limit)
        return cls(words, rows / rows.square().mean().sqrt())

    def ids(self, words: Sequence[str]) -> list[int]:
        """Returns the row of each word; 0 is the row of words without a vector."""
        return [self._ids.get(word) or self._ids.get(word.lower(), 0) for word in words]

    def forward(self, ids: Tensor) -> Tensor:
        """Returns the vectors (…, size) of ids (…)."""
        return F.embedding(ids, self.rows)

    def save(self, folder: Path) -> None:
        """Writes words and vectors into `folder`."""
        from safetensors.torch import save_file

        (folder / _WORDS).write_text(json.dumps(self.words, ensure_ascii=False), encoding="utf-8")
        save_file({"rows": self.rows[1:].cpu().contiguous()}, folder / _ROWS)

    @classmethod
    def load(cls, folder: Path) -> "WordVectors":
        """Returns the vectors that `save` wrote.

        Raises:
            ValueError, OSError: if the files are missing or do not belong together.
        """
        require("safetensors", extra="tagging")
        from safetensors.torch import load_file

        words, rows = json.loads((folder / _WORDS).read_text(encoding="utf-8")), load_file(folder / _ROWS)["rows"]
        if len(words) != len(rows):
            raise ValueError(f"{folder} has {len(words)} words and {len(rows)} vectors; copy the whole folder again")
        return cls(words, rows)
