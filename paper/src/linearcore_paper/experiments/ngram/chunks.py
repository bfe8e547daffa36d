"""Data of `ngram`: noun phrases of the Penn Treebank sample in BIO tags, and generated spans."""

import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import torch
from torch import Tensor

from linearcore.runtime import complaint
from linearcore_paper.experiments.ngram.trees import noun_phrases, parse_trees

PARTS = ("train", "dev", "test")
ARCHIVE = "ptb_sample.zip"
#: Words, suffixes and shapes that occur less often have index 1, unknown. Index 0 is padding.
_LEAST_COUNT = 2


@dataclass(frozen=True)
class Sentences:
    """Sentences of one part, padded.

    Attributes:
        inputs: (B, L, F) indices of features, (B, L, d) numbers, or (B, 1, F) if inputs and outputs differ in length.
        tags: (B, L), −100 at padding.
    """

    inputs: Tensor
    tags: Tensor

    def __len__(self) -> int:
        return len(self.tags)

    def rows(self, index: Tensor) -> "Sentences":
        """Returns some of the sentences, cut to the longest."""
        tags = self.tags[index]
        length = int((tags >= 0).sum(-1).max())
        return Sentences(self.inputs[index, :length], tags[:, :length])


@dataclass(frozen=True)
class Task:
    """A data set.

    Attributes:
        names: tag names in the order of their indices.
        parts: sentences of train, dev and test.
        sizes: rows of the embedding tables; empty if the inputs are numbers.
        length: number of tags of each output if inputs and outputs differ in length; 0 if they do not.
    """

    names: tuple[str, ...]
    parts: dict[str, Sentences]
    sizes: tuple[int, ...] = ()
    length: int = 0


def check_data(folder: Path | None, names: Sequence[str]) -> None:
    """Raises ValueError if a file is missing."""
    for name in names:
        if folder is None or not (folder / "tagging" / name).is_file():
            got = "no folder" if folder is None else f"{folder} without it"
            raise ValueError(complaint("data", f"be a folder with tagging/{name}", got, "pass --data DIR"))


@lru_cache(maxsize=1)
def data_hash(folder: Path) -> str:
    """Returns the SHA-256 of the Penn Treebank sample."""
    return sha256((folder / "tagging" / ARCHIVE).read_bytes()).hexdigest()


@lru_cache(maxsize=1)
def noun_phrase_task(folder: Path) -> Task:
    """Reads the noun phrases. Files whose position ends in 9 are dev, in 0 test, all others train."""
    names = ("O", "B-NP", "I-NP")
    sentences: dict[str, list[tuple[list[str], list[str]]]] = {part: [] for part in PARTS}
    for number, text in enumerate(_texts(folder / "tagging" / ARCHIVE), 1):
        part = {9: "dev", 0: "test"}.get(number % 10, "train")
        sentences[part] += [chunked for tree in parse_trees(text) if (chunked := noun_phrases(tree))[0]]
    tables = feature_tables([_features(word) for words, _ in sentences["train"] for word in words])
    parts = {}
    for part, pairs in sentences.items():
        length = max(len(words) for words, _ in pairs)
        inputs, tags = torch.zeros(len(pairs), length, len(tables), dtype=torch.long), torch.full((len(pairs), length), -100)
        for row, (words, chunks) in enumerate(pairs):
            index = [[table.get(feature, 1) for table, feature in zip(tables, _features(w), strict=True)] for w in words]
            inputs[row, : len(words)] = torch.tensor(index)
            tags[row, : len(words)] = torch.tensor([names.index(chunk) for chunk in chunks])
        parts[part] = Sentences(inputs, tags)
    return Task(names, parts, tuple(len(table) + 2 for table in tables))


def _texts(archive: Path) -> Iterator[str]:
    with zipfile.ZipFile(archive) as file:
        for name in sorted(name for name in file.namelist() if name.endswith(".mrg")):
            yield file.read(name).decode("latin-1")


def _features(word: str) -> tuple[str, str, str]:
    """Returns the word in lower case, its last three letters, and its shape: runs of capitals, small letters and digits."""
    kinds = ["A" if c.isupper() else "a" if c.islower() else "0" if c.isdigit() else c for c in word]
    shape = "".join(kind for before, kind in zip(["", *kinds], kinds, strict=False) if kind != before)
    return word.lower(), word[-3:].lower(), shape


def feature_tables(rows: Sequence[tuple[str, ...]]) -> list[dict[str, int]]:
    """Returns for each feature the indices of its values that occur at least twice."""
    counts = (Counter(values) for values in zip(*rows, strict=True))
    frequent = ([value for value, number in count.items() if number >= _LEAST_COUNT] for count in counts)
    return [{value: index for index, value in enumerate(values, 2)} for values in frequent]


def generated_task(seed: int, sentences: int) -> Task:
    """Generates spans of two types with lengths 1 to 5 between gaps, and inputs that say little about a single tag.

    The input of a position is the sum of a vector of its tag and Gaussian noise. The length of a span is not geometric, so
    no chain of these tags is exactly right.
    """
    generator = torch.Generator().manual_seed(seed)
    names, length, width = ("O", "B-X", "I-X", "B-Y", "I-Y"), 20, 8
    vectors = torch.randn(len(names), width, generator=torch.Generator().manual_seed(2026))
    tags = torch.zeros(3 * sentences, length, dtype=torch.long)
    lengths, gaps = torch.tensor([0.1, 0.1, 0.2, 0.5, 0.1]), torch.tensor([0.3, 0.3, 0.2, 0.2])
    for row in tags:
        place = _draw(gaps, generator)
        while place < length:
            kind, size = _draw(torch.ones(2), generator), 1 + _draw(lengths, generator)
            row[place : place + size] = 2 + 2 * kind
            row[place] = 1 + 2 * kind
            place += size + _draw(gaps, generator)
    inputs = vectors[tags] + 1.5 * torch.randn(*tags.shape, width, generator=generator)
    thirds = zip(PARTS, inputs.chunk(3), tags.chunk(3), strict=True)
    return Task(names, {part: Sentences(rows, labels) for part, rows, labels in thirds})


def _draw(weights: Tensor, generator: torch.Generator) -> int:
    return int(torch.multinomial(weights, 1, generator=generator))
