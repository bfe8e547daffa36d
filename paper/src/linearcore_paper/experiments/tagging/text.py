"""Data of the experiment `tagging`: treebanks whose sentences are joined into sequences of at least 100 words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import torch

from linearcore.runtime import complaint
from linearcore.tagging import TaggedSentence, Vocabulary, digest
from linearcore.tagging.readers import read_sentences

#: The paper's minimum number of words per sequence, and number of tags after inflation.
LEAST_WORDS, MANY_TAGS = 100, 4000
PARTS = ("train", "dev", "test")
#: Any type of sentence.
Sentence = TypeVar("Sentence")


@dataclass(frozen=True)
class Source:
    """A data set.

    Attributes:
        label: name in tables and figures.
        tag: the columns that form the tag.
        files: one file that is split by sentence number, or one for each of `PARTS`; empty for generated text.
        inflate: the number of tags after inflation; None keeps the original tags.
        epochs: number of training epochs.
        has_unique_ids: whether word numbers are unique; LASLA numbers some words twice.
    """

    label: str
    tag: str
    files: tuple[str, ...]
    inflate: int | None
    epochs: int
    has_unique_ids: bool = True


SOURCES = {
    "ptb": Source("Penn Treebank sample, 4000 tags", "tag", ("ptb_sample.zip",), MANY_TAGS, epochs=8),
    "ewt": Source(
        "English EWT, 4000 tags", "xpos", tuple(f"en_ewt-{part}.conllu.xz" for part in PARTS), MANY_TAGS, epochs=6
    ),
    "latin": Source(
        "LASLA Latin", "upos+feats", tuple(f"la_lasla-{part}.conllu.xz" for part in PARTS), None, epochs=4,
        has_unique_ids=False,
    ),
    "made": Source("made-up text, 40 tags", "tag", (), 40, epochs=4),
}  # fmt: skip


@dataclass(frozen=True)
class Text:
    """A data set as joined sequences.

    Attributes:
        parts: sequences of train, dev and test.
        vocabulary: vocabulary of the training part, with inflated tags.
        hash: hash of all sequences.
    """

    parts: dict[str, list[TaggedSentence]]
    vocabulary: Vocabulary
    hash: str


def check_data(folder: Path | None, names: Iterable[str]) -> None:
    """Raises ValueError with the name of the first missing file."""
    for name in names:
        for file in SOURCES[name].files:
            if folder is None or not (folder / "tagging" / file).is_file():
                got = "no folder" if folder is None else f"{folder} without it"
                raise ValueError(complaint("data", f"be a folder with tagging/{file}", got, "pass --data DIR"))


@lru_cache(maxsize=3)
def read_text(name: str, folder: Path | None) -> Text:
    """Reads a data set; cached per process."""
    source = SOURCES[name]
    if not source.files:
        parts = _generate_text()
    elif len(source.files) == 1:
        parts = every_tenth(_read(source, source.files[0], folder))
    else:
        parts = {part: _read(source, file, folder) for part, file in zip(PARTS, source.files, strict=True)}
    joined = {part: join(sentences) for part, sentences in parts.items()}
    vocabulary = Vocabulary.of(joined["train"])
    if source.inflate is not None:
        vocabulary = vocabulary.inflate(source.inflate)
    return Text(joined, vocabulary, digest(sequence for part in PARTS for sequence in joined[part]))


def join(sentences: Iterable[TaggedSentence], least: int = LEAST_WORDS) -> list[TaggedSentence]:
    """Joins consecutive sentences into sequences of at least `least` words; the last one may have fewer.

    Example:
        >>> join([(["a"], ["x"]), (["b", "c"], ["y", "z"]), (["d"], ["x"])], least=2)
        [(['a', 'b', 'c'], ['x', 'y', 'z']), (['d'], ['x'])]
    """
    sequences: list[TaggedSentence] = []
    words: list[str] = []
    tags: list[str] = []
    for sentence_words, sentence_tags in sentences:
        words, tags = [*words, *sentence_words], [*tags, *sentence_tags]
        if len(words) >= least:
            sequences.append((words, tags))
            words, tags = [], []
    return [*sequences, (words, tags)] if words else sequences


def _read(source: Source, file: str, folder: Path | None) -> list[TaggedSentence]:
    assert folder is not None
    sentences = read_sentences(folder / "tagging" / file, source.tag, check_ids=source.has_unique_ids)
    return [(sentence.words, sentence.tags or []) for sentence in sentences]


def every_tenth(sentences: Sequence[Sentence]) -> dict[str, list[Sentence]]:
    """Splits sentences by number, counted from 1: numbers that end in 9 are dev, in 0 test, all others train."""
    parts: dict[str, list[Sentence]] = {part: [] for part in PARTS}
    for number, sentence in enumerate(sentences, 1):
        parts[{9: "dev", 0: "test"}.get(number % 10, "train")].append(sentence)
    return parts


def _generate_text(tags: int = 12, sentences: int = 240) -> dict[str, list[TaggedSentence]]:
    """Generates random walks over a few tags, each with three successors and forty words, some shared by two tags."""
    generator = torch.Generator().manual_seed(2026)
    successors = torch.randint(tags, (tags, 3), generator=generator)
    generated = []
    for _ in range(sentences):
        tag, words, sentence_tags = int(torch.randint(tags, (), generator=generator)), [], []
        for _ in range(20):
            tag = int(successors[tag, int(torch.randint(3, (), generator=generator))])
            # Squared, so that word frequencies differ as in real text.
            rank = int(40 * float(torch.rand((), generator=generator)) ** 2)
            words.append(f"w{(tag if rank % 4 else tag // 2)}-{rank}")
            sentence_tags.append(f"t{tag}")
        generated.append((words, sentence_tags))
    return every_tenth(generated)
