"""Text for the experiment `tagging`: treebanks whose sentences are joined to sequences of at least 100 words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import torch

from linearcore.runtime import complaint
from linearcore.tagging import TaggedSentence, Vocabulary, digest
from linearcore.tagging.readers import read_sentences

#: Words of a sequence, at the least, and tags after inflation: the paper's.
LEAST_WORDS, MANY_TAGS = 100, 4000
PARTS = ("train", "dev", "test")
#: A sentence, in whatever form.
Some = TypeVar("Some")


@dataclass(frozen=True)
class Source:
    """A data set.

    Attributes:
        label: what a reader calls it.
        tag: the columns that are the tag.
        files: one that is split by number, or one for each of `PARTS`; none if it is made up.
        inflate: the number of tags after inflation; None leaves them as they are.
        epochs: passes of training.
        is_numbered_well: LASLA numbers some of its words twice.
    """

    label: str
    tag: str
    files: tuple[str, ...]
    inflate: int | None
    epochs: int
    is_numbered_well: bool = True


SOURCES = {
    "ptb": Source("Penn Treebank sample, 4000 tags", "tag", ("ptb_sample.zip",), MANY_TAGS, epochs=8),
    "ewt": Source(
        "English EWT, 4000 tags", "xpos", tuple(f"en_ewt-{part}.conllu.xz" for part in PARTS), MANY_TAGS, epochs=6
    ),
    "latin": Source(
        "LASLA Latin", "upos+feats", tuple(f"la_lasla-{part}.conllu.xz" for part in PARTS), None, epochs=4,
        is_numbered_well=False,
    ),
    "made": Source("made-up text, 40 tags", "tag", (), 40, epochs=4),
}  # fmt: skip


@dataclass(frozen=True)
class Text:
    """A data set as joined sequences.

    Attributes:
        parts: for train, dev and test the sequences.
        vocabulary: of the training part, inflated.
        hash: a short name of all of it.
    """

    parts: dict[str, list[TaggedSentence]]
    vocabulary: Vocabulary
    hash: str


def check_data(folder: Path | None, names: Iterable[str]) -> None:
    """Raises a ValueError that names the first file that is missing."""
    for name in names:
        for file in SOURCES[name].files:
            if folder is None or not (folder / "tagging" / file).is_file():
                got = "no folder" if folder is None else f"{folder} without it"
                raise ValueError(complaint("data", f"be a folder with tagging/{file}", got, "pass --data DIR"))


@lru_cache(maxsize=3)
def read_text(name: str, folder: Path | None) -> Text:
    """Reads a data set once in a process."""
    source = SOURCES[name]
    if not source.files:
        parts = _made_up()
    elif len(source.files) == 1:
        parts = every_tenth(_read(source, source.files[0], folder))
    else:
        parts = {part: _read(source, file, folder) for part, file in zip(PARTS, source.files, strict=True)}
    found = {part: join(sentences) for part, sentences in parts.items()}
    vocabulary = Vocabulary.of(found["train"])
    if source.inflate is not None:
        vocabulary = vocabulary.inflate(source.inflate)
    return Text(found, vocabulary, digest(sequence for part in PARTS for sequence in found[part]))


def join(sentences: Iterable[TaggedSentence], least: int = LEAST_WORDS) -> list[TaggedSentence]:
    """Sentences one after the other, until a sequence has `least` words; the last one may have fewer.

    Example:
        >>> join([(["a"], ["x"]), (["b", "c"], ["y", "z"]), (["d"], ["x"])], least=2)
        [(['a', 'b', 'c'], ['x', 'y', 'z']), (['d'], ['x'])]
    """
    found: list[TaggedSentence] = []
    words: list[str] = []
    tags: list[str] = []
    for own_words, own_tags in sentences:
        words, tags = [*words, *own_words], [*tags, *own_tags]
        if len(words) >= least:
            found.append((words, tags))
            words, tags = [], []
    return [*found, (words, tags)] if words else found


def _read(source: Source, file: str, folder: Path | None) -> list[TaggedSentence]:
    assert folder is not None
    sentences = read_sentences(folder / "tagging" / file, source.tag, check_ids=source.is_numbered_well)
    return [(sentence.words, sentence.tags or []) for sentence in sentences]


def every_tenth(sentences: Sequence[Some]) -> dict[str, list[Some]]:
    """Of the sentences of one file, numbered from 1: those whose number ends in 9 are dev, in 0 test, all others train."""
    parts: dict[str, list[Some]] = {part: [] for part in PARTS}
    for number, sentence in enumerate(sentences, 1):
        parts[{9: "dev", 0: "test"}.get(number % 10, "train")].append(sentence)
    return parts


def _made_up(tags: int = 12, sentences: int = 240) -> dict[str, list[TaggedSentence]]:
    """Walks over a few tags, each with three successors and forty words, some of which belong to two tags."""
    generator = torch.Generator().manual_seed(2026)
    successors = torch.randint(tags, (tags, 3), generator=generator)
    found = []
    for _ in range(sentences):
        tag, words, own = int(torch.randint(tags, (), generator=generator)), [], []
        for _ in range(20):
            tag = int(successors[tag, int(torch.randint(3, (), generator=generator))])
            # Squared, so that some words are frequent and others rare, as in text.
            rank = int(40 * float(torch.rand((), generator=generator)) ** 2)
            words.append(f"w{(tag if rank % 4 else tag // 2)}-{rank}")
            own.append(f"t{tag}")
        found.append((words, own))
    return every_tenth(found)
